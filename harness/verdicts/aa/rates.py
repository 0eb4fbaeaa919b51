"""The error rates of a run: how often identical arms differ, and how often slow-downs are found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from asv.commands.compare import _is_result_better
from asv_runner.statistics import compute_stats
from numpy.typing import NDArray

from harness.frame.columns import COLUMNS, NUMBERS, objects
from harness.frame.frame import axes_key, axis_text
from harness.frame.load import frame_of
from harness.frame.pairs import CASE, Pairs, Row, axes_of
from harness.measure.context import Context
from harness.records import json_file
from harness.records.files import OWN
from harness.verdicts.aa.arms import Arms, Effects, folder_of
from harness.verdicts.error_rates import (
    METHOD,
    SCHEMA,
    ErrorRates,
    Noise,
    Power,
    Rate,
    rate,
    read,
    total,
)
from harness.verdicts.judge import judged_arms
from harness.verdicts.table import table
from harness.verdicts.verdict import MOVED, SLOWER

ASV_FACTOR = 1.1
"""What `asv compare` and `asv continuous` take unless they are told otherwise."""

AT_ONCE = 5
"""One row in so many has its slow-down when it is judged; of the others it is taken back."""

Flagged = Iterator[tuple[str, bool]]
"""The stage of each row, and whether it was called different."""


class JudgedArms(NamedTuple):
    """Two arms, and what `harness compare` says of them."""

    pairs: Pairs
    verdicts: pd.DataFrame
    """A row per pair, in their order."""

    def rows(self) -> Iterator[tuple[Row, Row, pd.Series[Any]]]:
        """Yield the rows of both arms that were judged, with their verdict."""
        for (a, b), (_, verdict) in zip(self.pairs.pairs, self.verdicts.iterrows(), strict=True):
            if a is not None and b is not None and verdict["clock"]:
                yield a, b, verdict


def judged(a: pd.DataFrame, b: pd.DataFrame) -> JudgedArms:
    """Judge two arms as `harness compare` does where no noise is known."""
    pairs, verdicts = judged_arms(a, b)
    return JudgedArms(pairs, table(pairs, verdicts))


def anonymous(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without programs and code, so that the numbers alone decide on a verdict.

    Identical arms have equal programs, and proof excuses rows that differ all the same: it would
    hide what is to be counted here.
    """
    return frame.assign(fingerprint="", code="", commit="")


def rates_of(
    arms: Arms,
    context: Context,
    effort: str,
    earlier: Sequence[Power] = (),
    narrowed: bool = False,
    seed: int = 0,
) -> ErrorRates:
    """Return what the arms of a run say of this machine.

    `earlier` is the power that the run has measured before; it is kept where there is none anew.
    `narrowed` says that a user chose what was measured; `seed` decides which slow-downs are judged
    together.
    """
    frames = [tuple(anonymous(frame_of(arm)) for arm in pair) for pair in arms.pairs]
    pairs = [judged(*both) for both in frames]
    ours, families, asvs = (
        rates_by_stage(flagged for one in pairs for flagged in by(one))
        for by in (rows_called, families_called, rows_called_by_asv)
    )
    started = [record.started_at_ms for pair in arms.pairs for arm in pair for record in arm]
    power = [
        Power(stage, effects[stage], effort, one)
        for effects, records in arms.injected
        for stage, one in rates_by_stage(
            found_of(frames[-1][1], frame_of(records), effects, random.Random(seed))
        ).items()
    ]
    return ErrorRates(
        schema=SCHEMA,
        machine=context.machine,
        env=context.env,
        commit=context.commit.hash,
        started_at_ms=min(started, default=0),
        effort=effort,
        pairs=len(pairs),
        flagged=total(ours.values()),
        flagged_by_stage=ours,
        flagged_by_asv=total(asvs.values()),
        asv_by_stage=asvs,
        noise=noise(pairs),
        power=power or list(earlier),
        narrowed=narrowed,
        families=families,
        method=METHOD,
    )


def rows_called(one: JudgedArms) -> Flagged:
    """Yield what is called faster or slower, row by row."""
    for _, _, verdict in one.rows():
        yield verdict["stage"], verdict["verdict"] in MOVED


def families_called(one: JudgedArms) -> Flagged:
    """Yield each stage, and whether any row of it, or all of them together, is called."""
    rows = one.verdicts[one.verdicts["clock"] != ""]
    called = rows["verdict"].isin(MOVED) | rows["stage_verdict"].isin(MOVED)
    for stage, some in called.groupby(rows["stage"], sort=False).any().items():
        yield str(stage), bool(some)


def rows_called_by_asv(one: JudgedArms) -> Flagged:
    """Yield what asv's rule calls different: raw seconds, one sample per process."""
    for a, b, _ in one.rows():
        yield a["stage"], differs_for_asv(a["samples"], b["samples"])


def differs_for_asv(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tell whether `asv compare` would mark two results as better or worse."""
    (one, of_one), (other, of_other) = (compute_stats(samples, 1) for samples in (a, b))
    both = (of_one, list(a)), (of_other, list(b))
    return bool(
        _is_result_better(one, other, *both, ASV_FACTOR)
        or _is_result_better(other, one, *reversed(both), ASV_FACTOR)
    )


def found_of(
    control: pd.DataFrame, slowed: pd.DataFrame, effects: Effects, rng: random.Random
) -> Flagged:
    """Yield, of every row with a slow-down, whether it was called slower.

    In turns one row in five is judged as it was measured, and the slow-down of all others is
    divided out: a user asks what changed among much that did not.

    `control` was measured just before, without slow-downs; `rng` decides which rows are judged
    together.
    """
    factors = np.array([1 + effects.get(stage, 0.0) for stage in slowed["stage"]])
    turns = np.array(rng.sample(range(len(slowed)), len(slowed))) % AT_ONCE
    for turn in range(AT_ONCE):
        as_measured = (turns == turn) & (factors > 1)
        marked = scaled(slowed, np.where(as_measured, 1.0, 1 / factors))
        # Its protocol names the extra work, and unlike protocols are not compared.
        marked = marked.assign(fingerprint=np.where(as_measured, "lengthened", ""), protocol="")
        for _, b, verdict in judged(anonymous(control), marked).rows():
            if b["fingerprint"]:
                yield b["stage"], verdict["verdict"] == SLOWER


def scaled(frame: pd.DataFrame, factors: NDArray[np.float64]) -> pd.DataFrame:
    """Return a frame in which every value of a row's processes is multiplied by its factor."""
    times = [name for name, kind in COLUMNS.items() if kind == NUMBERS]
    lists = {
        name: objects(
            [value * factor for value in own]
            for own, factor in zip(frame[name], factors, strict=True)
        )
        for name in times
    }
    return frame.assign(**lists, value=frame["value"] * factors)


def noise(pairs: Iterable[JudgedArms]) -> list[Noise]:
    """Return how each stage of each case differs between identical arms."""
    cases: dict[object, Noise] = {}
    for one in pairs:
        for first, _, verdict in one.rows():
            axes = axes_of(first, one.pairs.axes)
            text = {name: first[name] for name in (*CASE, "version")}
            key = (*text.values(), axes_key(axes))
            if key not in cases:
                named = {name: value for name, value in axes.items() if axis_text(value)}
                cases[key] = Noise(axes=named, ratios=[], **text)
            cases[key].ratios.append(float(verdict["ratio"]))
    return list(cases.values())


def rates_by_stage(flagged: Iterable[tuple[str, bool]]) -> dict[str, Rate]:
    """Return the rate of each stage."""
    count: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for stage, is_flagged in flagged:
        of[stage] += 1
        count[stage] += is_flagged
    return {stage: rate(count[stage], of[stage]) for stage in of}


def file_of(context: Context, run: str) -> Path:
    """Return the file that holds the error rates of a run."""
    return folder_of(context.results, context.machine) / f"{run}{OWN}"


def power_before(file: Path) -> list[Power]:
    """Return the power that a run has measured before; none where its file cannot be used."""
    try:
        return read(file).power
    except (FileNotFoundError, json_file.DamagedError):
        return []


def write(file: Path, rates: ErrorRates) -> None:
    """Write error rates, all or nothing."""
    remedy = "The records of the run are kept; the same command writes it without measuring again."
    json_file.write(file, rates, remedy)
