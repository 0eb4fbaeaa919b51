"""Compare two arms that texts name."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from harness.frame import choose
from harness.frame.arms import resolve
from harness.frame.choose import takes_frame
from harness.frame.pairs import LABEL, Pairs, comparable_rows, pair
from harness.records.git import commits_named
from harness.verdicts.error_rates import ErrorRates, Setting, scatter_of, setting_of, stored
from harness.verdicts.judge import Judged, Terms, judge, judged_arms
from harness.verdicts.memory import with_sizes
from harness.verdicts.table import table
from harness.workload.filters import Filters


@dataclass(frozen=True)
class Comparison:
    """Two arms, and what changed from one to the other."""

    pairs: Pairs
    """The arms, and the rows that are shown; all that both arms have were judged."""
    judged: list[Judged]
    """The verdict on each, in their order."""
    frame: pd.DataFrame
    """What :func:`compare_arms` returns: a row per pair, in their order."""
    rates: dict[Setting, ErrorRates | None]
    """Of the machines, efforts and environments that were compared."""

    @property
    def in_turns(self) -> bool:
        """Whether the processes of both sides took turns in every row that a clock judged."""
        on_clock = self.frame[self.frame["clock"] != ""]
        return bool(len(on_clock) and on_clock["in_turns"].all())


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
    in_turns: bool = False,
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
        in_turns: the processes of both arms took turns, so they are compared as pairs.

    Returns:
        The columns that :func:`harness.verdicts.compare_arms` describes.

    Raises:
        UsageError: an arm fits nothing or in two ways, or nothing is left of both.
    """
    tree = Path(results) if results is not None else None
    filters = Filters(select=tuple(select), case=tuple(cases), stage=tuple(stages))
    # Labels tell the rows that filters leave.
    frame = frame if frame is None else frame.reset_index(drop=True)
    return comparison_of(frame, a, b, tree, filters=filters, terms=Terms(in_turns)).frame


def comparison_of(
    frame: pd.DataFrame | None,
    a: str,
    b: str,
    results: Path | None = None,
    *,
    filters: Filters | None = None,
    terms: Terms | None = None,
) -> Comparison:
    """Compare the arms that two texts name, of rows at hand; see :func:`judged_pairs`."""
    commits = commits_named(results, a, b)
    pairs = pair(resolve(a, frame, commits), resolve(b, frame, commits))
    return judged_pairs(pairs, results, filters=filters, terms=terms)


def compare_arms(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    rates: ErrorRates | Sequence[ErrorRates] | None = None,
    in_turns: bool = False,
    on: Collection[str] = (),
    stages: Collection[str] = (),
) -> pd.DataFrame:
    """Return what changed from `a` to `b`: a row per case and stage.

    Rows are paired by machine, workload, axes, target, transform, precision, scenario and stage;
    of several rows of an arm the newest counts. Comparisons with baselines and the instruments
    (`process`, `reference`) are left out. docs/method.md states the test and the rules.

    Args:
        a: a frame such as :func:`harness.load` returns.
        b: the same of the other arm.
        rates: what machines' own A/A measurements say; a case that scatters there more than its
            stage's smallest effect needs a larger one.
        in_turns: the processes of both arms took turns, so they are compared as pairs in the order
            of `samples` where both sides have as many.
        on: columns in which the arms differ by intention, and rows of a pair need not agree.
        stages: the stages that are returned, all without any. All are judged.

    Returns:
        Text: `machine`, `workload`, `version` (`x → y` where the sides differ), an object column
        per axis, `target`, `transform`, `precision`, `scenario`, `stage`, `unit`; `verdict`
        (`same`, `faster`, `slower`, `unsure`, `incomparable`, `broken`; `more` and `less` of a
        value in another unit than seconds, and of Python's calls, where the change is less than
        counts in their stage); `evidence`, what it rests on (`clock`; `waiting`, wall time beyond
        CPU time; `calls`, the slowest tenth of calls; `counts` of Python's calls; `proof` that
        nothing differs; `value`, one a side; "" where nothing was compared); `clock` (`cpu` or
        `wall`); `cause` (`program`, `inputs`, `environment`; `machine` where the clock differed and
        nothing else does; `load` where each side met another; or ""); `needs`, what would decide
        it (`processes`, `turns`, or ""); `problem` and `detail`, why nothing was
        compared, or by which proof; `fingerprint_a`, `fingerprint_b`; `also_differs`, what else
        differs from A to B (commit, effort, versions, flags, host), besides `on`; `stage_verdict`
        and `stage_cause`, of all rows of the stage together.

        Float64, NaN where not known: `a_s`, `b_s`, geometric means over processes of what is
        compared, in `unit`; `ratio`, b_s / a_s, above 1 for slower, with its interval `low` to
        `high`: 95 %, corrected for the rows of the stage where the row changes by what counts; `p`
        for a ratio of 1, `p_adjusted` corrected for the number of rows of the stage; `effect`, the
        smallest that counts (0.05: 5 %); `clock_ratio`, what the clock said of a row in which
        nothing differs; `others_a`, `others_b`, how many cores others kept busy; `stage_ratio`, of
        the stage's typical case. Int64: `n_a`, `n_b`, processes. Bool: `in_turns`, whether the
        processes of both sides took turns.

    Raises:
        UsageError: `a` or `b` lacks columns that every frame has.
    """
    pairs, judged = judged_arms(a, b, rates, in_turns, on)
    frame = table(pairs, judged)
    if stages:
        frame = frame[frame["stage"].isin(stages)].reset_index(drop=True)
    return frame


def judged_pairs(
    pairs: Pairs,
    results: Path | None = None,
    *,
    filters: Filters | None = None,
    terms: Terms | None = None,
) -> Comparison:
    """Judge the rows of two arms, with the error rates that `results` holds.

    `filters` hide rows: what is shown is the same with and without them. `terms` say how: in turns
    or not, and at which share of the error.
    """
    every, rates = with_sizes(pairs), rates_of(pairs, results)
    judged = judge(every, scatter_of(rates.known), terms)
    shown = _shown(every, filters or Filters())
    kept = every._replace(pairs=[every.pairs[number] for number in shown])
    judged = [judged[number] for number in shown]
    return Comparison(kept, judged, table(kept, judged), rates.of)


def _shown(pairs: Pairs, filters: Filters) -> list[int]:
    """Return which pairs have a row that filters leave."""
    rows = pd.concat([pairs.a.rows, pairs.b.rows], keys=[0, 1])
    wanted = set(choose.rows(rows, filters).index)
    return [
        number
        for number, sides in enumerate(pairs.pairs)
        if any(row is not None and (arm, row[LABEL]) in wanted for arm, row in enumerate(sides))
    ]


class Rates(NamedTuple):
    """What machines' own A/A measurements say."""

    of: dict[Setting, ErrorRates | None]
    """By machine, effort and environment of the arms."""
    known: list[ErrorRates]
    """Whatever the environment: thresholds come from all that is stored."""


def rates_of(pairs: Pairs, results: Path | None) -> Rates:
    """Return the error rates of the machines and efforts of two arms."""
    settings: dict[Setting, None] = {}
    for arm in (pairs.a, pairs.b):
        rows = comparable_rows(arm.rows)
        rows = rows[rows["effort"] != ""]  # no `harness aa` is of benchmarks that asv measured
        for machine in sorted(rows["machine"].unique()):
            settings[setting_of(rows[rows["machine"] == machine], machine)] = None
    stored_of = dict.fromkeys((one.machine, one.effort) for one in settings)
    measured = [rates for one in stored_of if results for rates in stored(results, *one)]
    of = {
        setting: next((r for r in measured if (r.machine, r.effort, r.env) == setting), None)
        for setting in settings
    }
    return Rates(of, measured)
