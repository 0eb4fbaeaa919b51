"""Columns of a row that are made of what each of its processes measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.frame.columns import LISTS, objects
from harness.stages.sampling import median_interval_ranks
from harness.stages.stage import median

if TYPE_CHECKING:
    from harness.frame.record_view import StageView
    from harness.records.schema import StageSamples

Array = np.ndarray[Any, Any]

WIDTH = 12
"""How many elements one process gives for one stage."""


def elements(
    number: int, value_ns: float, by_ns: float, taken: StageView | StageSamples
) -> tuple[float, ...]:
    """Return what one process gives for a stage.

    They are the number of the stage, its value and the reference's; of its calls the least, the
    10, 50 and 90 %, and how many they were; of programs that were built inside of it how many, and
    the nanoseconds; and those of Python's garbage collector. These are medians over passes. The
    last is the process's CPU time, the least over passes. NaN is what is not known.
    """
    calls, programs = taken.calls, taken.programs
    told = (math.nan,) * 5
    if calls:
        told = (calls.least_ns, calls.p10_ns, calls.p50_ns, calls.p90_ns, calls.calls)
    built = (median(programs), median(taken.programs_ns)) if programs else (math.nan,) * 2
    collected = median(taken.collected_ns) if taken.collected_ns else math.nan
    cpu_ns = min(taken.cpu_ns, default=math.nan)
    return (number, value_ns, by_ns, *told, *built, collected, cpu_ns)


def statistics(row_of: Array, flat: Array, process_of: Array, ids: Array) -> dict[str, Any]:
    """Return the columns made of values, for all rows of as many processes at once.

    Args:
        row_of: which row each process's stage is of.
        flat: float64 (stages of processes, WIDTH), of :func:`elements`.
        process_of: the name of each of those processes.
        ids: the rows, sorted.
    """
    order = np.argsort(row_of, kind="stable")
    flat, process_of = flat[order], process_of[order]
    known_of_some = {"cpu_samples": flat[:, 11] / 1e9, "p90_samples": flat[:, 6] / 1e9}
    medians = {
        "value": flat[:, 1] / 1e9,
        "calibrated": flat[:, 1] / flat[:, 2],
        **{name: flat[:, 3 + at] / 1e9 for at, name in enumerate(("least", "p10", "p50", "p90"))},
        "programs": flat[:, 8],
        "programs_s": flat[:, 9] / 1e9,
        "collected_s": flat[:, 10] / 1e9,
    }
    intervals = {"value": ("low", "high"), "p50": ("p50_low", "p50_high")}
    known, starts, counts = np.unique(row_of[order], return_index=True, return_counts=True)
    rows = np.searchsorted(ids, known)
    names = (*medians, *(name for pair in intervals.values() for name in pair), "n_calls")
    numbers = {name: np.full(len(ids), np.nan) for name in names}
    sizes = np.zeros(len(ids), np.int64)
    sizes[rows] = counts
    lists = {name: np.empty(len(ids), object) for name in LISTS}
    bare = np.flatnonzero(sizes == 0)
    for column in lists.values():
        column[bare] = objects([] for _ in bare)
    for size in np.unique(counts).tolist():
        at = rows[counts == size]
        members = starts[counts == size][:, None] + np.arange(size)
        ranks = median_interval_ranks(size)
        for name, all_of_them in medians.items():
            ordered = np.sort(all_of_them[members], axis=1)
            numbers[name][at] = _median_of_sorted(ordered)
            if ranks is not None and name in intervals:
                # NaN, which sorts last, has no rank: then some process does not know.
                ordered[np.isnan(ordered[:, -1])] = np.nan
                for end, rank in zip(intervals[name], ranks, strict=True):
                    numbers[end][at] = ordered[:, rank]
        numbers["n_calls"][at] = flat[members, 7].sum(axis=1)
        lists["samples"][at] = objects(medians["value"][members].tolist())
        lists["calibrated_samples"][at] = objects(medians["calibrated"][members].tolist())
        lists["processes"][at] = objects(process_of[members].tolist())
        for name, of_processes in known_of_some.items():
            known_here = ~np.isnan(of_processes[members]).all(axis=1)
            lists[name][at[known_here]] = objects(of_processes[members][known_here].tolist())
            lists[name][at[~known_here]] = objects([] for _ in at[~known_here])
        lists["cpu_processes"][at] = objects(
            names if cpu else []
            for names, cpu in zip(lists["processes"][at], lists["cpu_samples"][at], strict=True)
        )
    return {**numbers, "n_processes": sizes, **lists}


def _median_of_sorted(values: Array) -> Array:
    """Return the median of each row of (rows, n) sorted values, leaving out NaN, which sorts last.

    NaN for a row of nothing but NaN.
    """
    n = np.count_nonzero(~np.isnan(values), axis=1)
    rows = np.arange(len(values))
    low, high = values[rows, np.maximum(n - 1, 0) // 2], values[rows, n // 2]
    return (low + high) / 2  # type: ignore[no-any-return]
