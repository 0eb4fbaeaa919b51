"""The error rates of a run: how often identical arms differ, and how often slow-downs are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pandas as pd
from asv.commands.compare import _is_result_better
from asv_runner.statistics import compute_stats
from scipy.stats import binomtest

from harness.engine.context import Context
from harness.frame.load import frame_of
from harness.records.files import replaced
from harness.verdicts import rules
from harness.verdicts.aa.arms import Arms, Effects, folder_of
from harness.verdicts.calibration import Calibration
from harness.verdicts.error_rates import SCHEMA, ErrorRates, Noise, Power, Rate
from harness.verdicts.judge import judge
from harness.verdicts.pairs import CASE, Pairs, Row, axes_key, axes_of, axis_text, pair

ASV_FACTOR = 1.1
"""What `asv compare` and `asv continuous` take unless they are told otherwise."""

Flagged = Iterator[tuple[str, bool]]
"""The stage of each row, and whether it was called different."""


def rates_of(
    arms: Arms,
    context: Context,
    effort: str,
    earlier: Sequence[Power] = (),
    narrowed: bool = False,
) -> ErrorRates:
    """Return what the arms of a run say of this machine.

    `earlier` is the power that the run has measured before; it is kept where there is none anew.
    `narrowed` says that a user chose what was measured.
    """
    frames = [tuple(anonymous(frame_of(arm)) for arm in pair) for pair in arms.pairs]
    pairs = [pair(a, b) for a, b in frames]
    ours, asvs = (
        rates_by_stage(flagged for one in pairs for flagged in judged(one))
        for judged in (flagged_by_us, flagged_by_asv)
    )
    started = [record.started_at_ms for pair in arms.pairs for arm in pair for record in arm]
    power = [
        Power(stage, effects[stage], effort, rate)
        for effects, records in arms.injected
        for stage, rate in rates_by_stage(
            found_of(pairs[-1], pair(frames[-1][1], anonymous(frame_of(records))), effects)
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
        flagged=_total(ours.values()),
        flagged_by_stage=ours,
        flagged_by_asv=_total(asvs.values()),
        asv_by_stage=asvs,
        noise=noise(pairs),
        power=power or list(earlier),
        narrowed=narrowed,
    )


def anonymous(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without fingerprints, so that the numbers alone decide on a verdict.

    Identical arms have equal programs, and a verdict on equal programs calls no changed execution
    slower: it would hide what is to be counted here.
    """
    return frame.assign(fingerprint="")


def flagged_by_us(pairs: Pairs) -> Flagged:
    """Yield what is called faster or slower at the effects that count where no noise is known."""
    verdicts = judge(pairs, Calibration(pairs), {})["verdict"]
    for (a, _), verdict in zip(pairs.pairs, verdicts, strict=True):
        if a is not None and verdict != rules.INCOMPARABLE:
            yield a["stage"], verdict in (rules.FASTER, rules.SLOWER)


def flagged_by_asv(pairs: Pairs) -> Flagged:
    """Yield what asv's rule calls different: raw seconds, one sample per process."""
    for a, b in _measured(pairs):
        if len(a["samples"]) and len(b["samples"]):
            yield a["stage"], differs_for_asv(a["samples"], b["samples"])


def differs_for_asv(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tell whether `asv compare` would mark two results as better or worse."""
    results = []
    for samples in (list(a), list(b)):
        value, stats = compute_stats(samples, 1)
        results.append((value, (stats, samples)))
    (one, one_ss), (other, other_ss) = results
    return bool(
        _is_result_better(one, other, one_ss, other_ss, ASV_FACTOR)
        or _is_result_better(other, one, other_ss, one_ss, ASV_FACTOR)
    )


def found_of(identical: Pairs, slowed: Pairs, effects: Effects) -> Flagged:
    """Yield, of every row with a slow-down, whether it was called slower.

    Each is judged by itself in the family of rows that a user would see: all others are those of
    two identical arms.

    Args:
        identical: the last pair of identical arms.
        slowed: the second of these, and the arm with slow-downs that was measured right after it.
        effects: the slow-downs.
    """
    calibration = Calibration(identical)
    places = {
        _case(a, identical): number
        for number, (a, b) in enumerate(identical.pairs)
        if a is not None and b is not None
    }
    for control, slow in _measured(slowed):
        place = places.get(_case(control, slowed))
        if slow["stage"] in effects and place is not None:
            family = list(identical.pairs)
            family[place] = control, slow
            decided = judge(identical._replace(pairs=family), calibration, {})
            yield slow["stage"], decided["verdict"][place] == rules.SLOWER


def noise(pairs: Iterable[Pairs]) -> list[Noise]:
    """Return how each stage of each case differs between identical arms."""
    cases: dict[object, Noise] = {}
    for one in pairs:
        for first, second in _measured(one):
            a, b = _calibrated(first), _calibrated(second)
            if not (a > 0 and b > 0):
                continue
            key = _case(first, one)
            if key not in cases:
                axes = axes_of(first, one.axes)
                known = {name: value for name, value in axes.items() if axis_text(value)}
                text = {name: first[name] for name in (*CASE, "version")}
                cases[key] = Noise(axes=known, ratios=[], **text)
            cases[key].ratios.append(b / a)
    return list(cases.values())


def _calibrated(row: Row) -> float:
    value = float(row["calibrated"])
    return value if value == value else float(row["value"])


def _measured(pairs: Pairs) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of one case that both arms have measured."""
    for a, b in pairs.both():
        if a["version"] == b["version"] and a["value"] == a["value"] and b["value"] == b["value"]:
            yield a, b


def _case(row: Row, pairs: Pairs) -> tuple[object, ...]:
    return (*(row[name] for name in (*CASE, "version")), axes_key(axes_of(row, pairs.axes)))


def rate(count: int, of: int) -> Rate:
    """Return a share with its 95 % interval.

    Source: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413, as in
    :meth:`scipy.stats.BinomTestResult.proportion_ci`.
    """
    if not of:
        return Rate(0, 0, 0.0, 1.0)
    low, high = binomtest(count, of).proportion_ci(0.95, "exact")
    return Rate(count, of, float(low), float(high))


def rates_by_stage(flagged: Iterable[tuple[str, bool]]) -> dict[str, Rate]:
    """Return the rate of each stage."""
    count: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for stage, is_flagged in flagged:
        of[stage] += 1
        count[stage] += is_flagged
    return {stage: rate(count[stage], of[stage]) for stage in of}


def _total(rates: Iterable[Rate]) -> Rate:
    listed = list(rates)
    return rate(sum(one.count for one in listed), sum(one.of for one in listed))


def file_of(context: Context, run: str) -> Path:
    """Return the file that holds the error rates of a run."""
    return folder_of(context.results, context.machine) / f"{run}.json"


def read(file: Path) -> ErrorRates | None:
    """Return what a file holds; None where there is none, or one of another schema."""
    try:
        rates = msgspec.json.decode(file.read_bytes(), type=ErrorRates)
    except (OSError, msgspec.MsgspecError):
        return None
    return rates if rates.schema == SCHEMA else None


def write(file: Path, rates: ErrorRates) -> None:
    """Write error rates, all or nothing.

    Raises:
        StoreError: the folder cannot be written.
    """
    remedy = "The records of the run are kept; the same command writes it without measuring again."
    with replaced(file, "wb", remedy) as handle:
        handle.write(msgspec.json.format(msgspec.json.encode(rates), indent=1) + b"\n")
