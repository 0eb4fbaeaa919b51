"""How often identical arms are called different: by our verdicts, and by asv's rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.frame.choose import INSTRUMENTS
from harness.frame.frame import axis_columns
from harness.verdicts.error_rates import Noise, Rate

if TYPE_CHECKING:
    import pandas as pd

FLAGGED = frozenset({"faster", "slower"})

ASV_FACTOR = 1.1
"""What `asv compare` and `asv continuous` take unless they are told otherwise."""

CASE = ("workload", "version", "target", "transform", "precision", "scenario")


def rate(count: int, of: int) -> Rate:
    """Return a share with its 95 % interval.

    Source: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413, as in
    :meth:`scipy.stats.BinomTestResult.proportion_ci`.
    """
    if not of:
        return Rate(0, 0, 0.0, 1.0)
    from scipy.stats import binomtest

    low, high = binomtest(count, of).proportion_ci(0.95, "exact")
    return Rate(count, of, float(low), float(high))


def rates_by_stage(judged: Iterable[tuple[str, bool]]) -> dict[str, Rate]:
    """Return the rate of each stage, from pairs of stage and whether it was flagged."""
    count: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for stage, is_flagged in judged:
        of[stage] += 1
        count[stage] += is_flagged
    return {stage: rate(count[stage], of[stage]) for stage in of}


def total(rates: Iterable[Rate]) -> Rate:
    """Return the rate over all stages."""
    listed = list(rates)
    return rate(sum(one.count for one in listed), sum(one.of for one in listed))


def without_fingerprints(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without fingerprints, so that the numbers alone decide on a verdict.

    Identical arms have equal programs, and a verdict on equal programs calls no changed execution
    slower: it would hide what is to be counted here.
    """
    return frame.assign(fingerprint="")


def verdicts(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts on two arms, at the effects that count where no noise is known."""
    from harness.verdicts import compare_arms

    found = compare_arms(a, b, rates=None)
    return found[found["verdict"] != "incomparable"]


def judged_by_us(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> Iterator[tuple[str, bool]]:
    """Yield stage and whether it was called faster or slower, of every row of every pair."""
    for a, b in pairs:
        found = verdicts(without_fingerprints(a), without_fingerprints(b))
        for stage, verdict in zip(found["stage"], found["verdict"], strict=True):
            yield stage, verdict in FLAGGED


def judged_by_asv(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> Iterator[tuple[str, bool]]:
    """Yield the same by asv's rule: raw seconds, one sample per process, as under `asv run`."""
    for first, second in rows_of_pairs(pairs):
        if len(first["samples"]) and len(second["samples"]):
            yield first["stage"], differs_for_asv(first["samples"], second["samples"])


def differs_for_asv(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tell whether `asv compare` would mark two results as better or worse."""
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    results = []
    for samples in (list(a), list(b)):
        value, stats = compute_stats(samples, 1)
        results.append((value, (stats, samples)))
    (one, one_ss), (other, other_ss) = results
    return bool(
        _is_result_better(one, other, one_ss, other_ss, ASV_FACTOR)
        or _is_result_better(other, one, other_ss, one_ss, ASV_FACTOR)
    )


def noise(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> list[Noise]:
    """Return how each stage of each case differs between identical arms."""
    found: dict[Any, Noise] = {}
    for first, second in rows_of_pairs(pairs):
        a, b = (_calibrated(row) for row in (first, second))
        if not (a > 0 and b > 0):
            continue
        axes = first["axes"]
        key = (*(first[column] for column in (*CASE, "stage")), repr(axes))
        if key not in found:
            text = {column: first[column] for column in (*CASE, "stage")}
            found[key] = Noise(axes=axes, ratios=[], **text)
        found[key].ratios.append(b / a)
    return list(found.values())


def rows_of_pairs(
    pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the two rows of each case and stage that both arms of a pair have."""
    for a, b in pairs:
        second = case_rows(b)
        for key, row in case_rows(a).items():
            if key in second:
                yield row, second[key]


def case_rows(frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return the measured rows of cases as dictionaries, with their `axes`, by what they are of."""
    axes = axis_columns(frame)
    wanted = frame[~frame["workload"].isin(INSTRUMENTS) & frame["value"].notna()]
    found: dict[Any, dict[str, Any]] = {}
    for position, cells in zip(wanted.index, wanted.to_dict("records"), strict=True):
        row: dict[str, Any] = {str(column): cell for column, cell in cells.items()}
        row["axes"] = {name: row[name] for name in axes if not _is_none(row[name])}
        row["position"] = position
        found[(*(row[column] for column in (*CASE, "stage")), repr(row["axes"]))] = row
    return found


def _is_none(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _calibrated(row: dict[str, Any]) -> float:
    value = row["calibrated"]
    return float(row["value"] if _is_none(value) else value)
