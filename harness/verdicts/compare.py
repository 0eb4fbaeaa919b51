"""Compare two arms that texts name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.declare.filters import Filters
from harness.frame import choose
from harness.frame.choose import takes_frame
from harness.records.git import top_of
from harness.verdicts import arms
from harness.verdicts.arms import Arm
from harness.verdicts.error_rates import ErrorRates, Setting, scatter_of, setting_of, stored
from harness.verdicts.judge import verdicts_on
from harness.verdicts.pairs import LABEL, Pairs, comparable_rows, pair


@dataclass(frozen=True)
class Comparison:
    """Two arms, and what changed from one to the other."""

    a: Arm
    b: Arm
    pairs: Pairs
    """The rows that are shown; all that both arms have were judged."""
    frame: pd.DataFrame
    """What :func:`harness.verdicts.compare_arms` returns: a row per pair, in their order."""
    rates: dict[Setting, ErrorRates | None]
    """Of the machines, efforts and environments that were compared."""

    @property
    def interleaved(self) -> bool:
        """Whether the processes of both sides took turns in every row that was judged."""
        judged = self.frame[self.frame["basis"] != ""]
        return bool(len(judged) and judged["in_turns"].all())


@takes_frame
def compare(
    frame: pd.DataFrame | None,
    a: str,
    b: str,
    *,
    select: Sequence[str] = (),
    stages: Sequence[str] = (),
    cases: Sequence[str] = (),
    results: str | os.PathLike[str] | None = None,
    interleaved: bool = False,
) -> pd.DataFrame:
    """Return what changed from arm `a` to arm `b`: a row per case and stage, with a verdict.

    An arm is a results tree, record file or Parquet file; `column=value[,column=value...]`, as in
    `jax=0.11.2,machine=box`; or one word: a commit's beginning, tag, branch or `HEAD`, a version of
    JAX, an environment, a machine, a target, a scenario or a night.

    Args:
        frame: what :func:`harness.load` returns; None where both arms are paths.
        a: the arm to compare with.
        b: the arm that is judged: `slower` means slower than `a`.
        select: regular expressions for the names of workloads; as all filters, they hide rows,
            and change no verdict.
        stages: names of stages.
        cases: `axis=value`.
        results: the results tree, for the error rates of its machines and the repository in which
            names of commits are looked up; where it is in none, that of the working directory is
            asked.
        interleaved: the processes of both arms took turns, so raw seconds are compared.

    Returns:
        The columns that :func:`harness.verdicts.compare_arms` describes.

    Raises:
        UsageError: an arm fits nothing or in two ways, or nothing is left of both.
    """
    tree = Path(results) if results is not None else None
    filters = Filters(select=tuple(select), case=tuple(cases), stage=tuple(stages))
    # Labels tell the rows that filters leave.
    named = named_arms(frame if frame is None else frame.reset_index(drop=True), a, b, tree)
    return comparison_between(*named, tree, filters=filters, interleaved=interleaved).frame


def named_arms(frame: pd.DataFrame | None, a: str, b: str, results: Path | None) -> tuple[Arm, Arm]:
    """Return the arms that two texts name."""
    repository = results if results is not None and top_of(results) else Path()
    return arms.resolve(a, frame, repository), arms.resolve(b, frame, repository)


def comparison_between(
    a: Arm,
    b: Arm,
    results: Path | None = None,
    *,
    filters: Filters | None = None,
    on: Sequence[str] | None = None,
    interleaved: bool = False,
    share: float = 1.0,
    stored_share: float = 1.0,
) -> Comparison:
    """Compare arms whose rows are at hand, with the error rates that `results` holds.

    `filters` hide rows: what is shown is the same with and without them. `on` are the columns in
    which the arms differ by intention; None means those that both select on with different values.
    `share` is the part of the error that this look at rows in turns may make
    (:func:`harness.verdicts.live.rounds.share`), `stored_share` that of a look at all others.
    """
    differing = arms.differing(a, b) if on is None else list(on)
    settings: dict[Setting, None] = {}
    for arm in (a, b):
        rows = comparable_rows(arm.rows)
        rows = rows[rows["effort"] != ""]  # no `harness aa` is of benchmarks that asv measured
        for machine in sorted(rows["machine"].unique()):
            settings[setting_of(rows[rows["machine"] == machine], machine)] = None
    # Thresholds come from all that is stored of a machine and an effort, whatever the environment.
    stored_of = dict.fromkeys((one.machine, one.effort) for one in settings)
    known = [rates for one in stored_of if results for rates in stored(results, *one)]
    rates = {
        setting: next((r for r in known if (r.machine, r.effort, r.env) == setting), None)
        for setting in settings
    }
    rows = pd.concat([a.rows, b.rows], keys=[0, 1])
    wanted = set(choose.rows(rows, filters or Filters()).index)
    pairs = pair(a.rows, b.rows, differing)
    frame = verdicts_on(pairs, scatter_of(known), interleaved, share, differing, stored_share)
    shown = [
        number
        for number, sides in enumerate(pairs.pairs)
        if any(row is not None and (arm, row[LABEL]) in wanted for arm, row in enumerate(sides))
    ]
    kept = pairs._replace(pairs=[pairs.pairs[number] for number in shown])
    frame = frame.iloc[shown].reset_index(drop=True)
    return Comparison(a, b, kept, frame, rates)
