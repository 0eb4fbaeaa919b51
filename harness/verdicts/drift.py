"""The machine's drift: what a process's other cases, or its plain Python loop, have in common."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.frame.frame import axes_key
from harness.stages.registry import STAGES, calibrated_by
from harness.stages.stage import LOOP
from harness.verdicts.pairs import CASE, Pairs, Row, axes_of
from harness.verdicts.statistics import Floats, medians

OTHERS, BY_LOOP, RAW, INTERLEAVED = "others", "loop", "raw", "interleaved"
"""What ratios are of: seconds without what the other cases of each process share, or without what
its plain Python loop shows; seconds as measured; and those of processes that took turns."""

WALL, CALLS = "wall", "calls"
"""What else ratios are of, where it decided: wall time, where CPU time is the rule; and what 90 %
of calls do not exceed."""

LEAST_OTHERS = 3
"""Other workloads in a process; what fewer share may be their own."""

MOSTLY = 0.5
"""Of the rows, more must share their processes with others: else nothing is divided out."""

_PROCESSES = (
    *("machine", *(name for name in CASE if name != "stage"), "version"),
    *("started_at", "effort", "n_processes"),
)


class Seconds(NamedTuple):
    """What a row is compared by: a value per process."""

    values: Sequence[float]
    processes: Sequence[str]
    """Which they are of; empty where that is not known."""


def seconds(a: Row, b: Row) -> tuple[Seconds, Seconds]:
    """Return what two rows are compared by, on the clock of their stage.

    That is wall time where one of them does not know its CPU time, or where only one knows that of
    processes that hold the cases of many workloads.
    """
    sides = [as_measured(row) for row in (a, b)]
    stage = STAGES.get(a["stage"])
    if stage is not None and stage.clock == "cpu":
        cpu = [row.get("cpu_samples") or () for row in (a, b)]
        names = [_names(row, "cpu_processes", len(row.get("cpu_samples") or ())) for row in (a, b)]
        apart = [of != one.processes for of, one in zip(names, sides, strict=True)]
        if all(map(len, cpu)) and are_times(*cpu) and apart[0] == apart[1]:
            return Seconds(cpu[0], names[0]), Seconds(cpu[1], names[1])
    return sides[0], sides[1]


def as_measured(row: Row) -> Seconds:
    """Return the wall time of a row's processes."""
    return Seconds(row["samples"], _names(row, "processes", len(row["samples"])))


def _names(row: Row, column: str, count: int) -> Sequence[str]:
    names: Sequence[str] = row.get(column) or []
    return names if len(names) == count and all(names) else []


def are_times(*sides: Iterable[float]) -> bool:
    """Tell whether all values are seconds that something can have taken."""
    return all(0 < value < math.inf for side in sides for value in side)


def of_others(rows: Sequence[Row], taken: Sequence[Seconds], logs: Floats) -> Floats | None:
    """Return by how much each process of an arm was slower in its other workloads, as logarithms.

    That is the median of value / level over the cases of all other workloads in the process. A
    median, where a mean would let one case that is five times slower make all others 8 % faster.

    `logs` are the values of the rows / the case's level over both arms, float64 (rows, processes).
    The result is NaN where a process has too few other workloads, and None where most have, or it
    is not known which values are of one process.
    """
    processes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, one, values in zip(rows, taken, logs, strict=True):
        if not one.processes:
            return None
        for name, value in zip(one.processes, values, strict=False):
            processes[name][row["workload"]].append(value)
    found: dict[tuple[str, str], float] = {}
    for name, workloads in processes.items():
        for workload in workloads:
            others = [v for other, own in workloads.items() if other != workload for v in own]
            several = len(workloads) > LEAST_OTHERS
            found[name, workload] = float(np.median(others)) if several else math.nan
    factors = np.full(logs.shape, np.nan)
    for at, (row, one) in enumerate(zip(rows, taken, strict=True)):
        factors[at, : len(one.values)] = [found[name, row["workload"]] for name in one.processes]
    return factors if np.isfinite(factors).any(axis=1).mean() > MOSTLY else None


class Loops:
    """What the plain Python loop took in the processes of two arms."""

    def __init__(self, pairs: Pairs) -> None:
        """Take all pairs of the arms: the loop is read off any stage that is divided by it."""
        self._axes = pairs.axes
        rows = ([one[side] for one in pairs.pairs] for side in (0, 1))
        self._arms = [self._arm([row for row in of_arm if row is not None]) for of_arm in rows]

    def _arm(self, rows: Sequence[Row]) -> tuple[dict[Any, list[float]], dict[str, float]]:
        """Return the loop of each case's processes, and of each process that is known by name."""
        of_case: dict[Any, list[float]] = {}
        for row in rows:
            if calibrated_by(row["stage"]) == LOOP:
                taken, calibrated = row["samples"], row["calibrated_samples"]
                if len(taken) == len(calibrated) and all(one > 0 for one in calibrated):
                    own = [value / one for value, one in zip(taken, calibrated, strict=True)]
                    of_case[self._process_key(row)] = own
        named: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            known = of_case.get(self._process_key(row), ())
            for name, value in zip(as_measured(row).processes, known, strict=False):
                named[name].append(value)
        return of_case, {name: float(np.median(values)) for name, values in named.items()}

    def of(self, row: Row, side: int, taken: Seconds) -> Sequence[float]:
        """Return the seconds of the loop, a value per process of a row; () where not known."""
        of_case, of_process = self._arms[side]
        if taken.processes and all(name in of_process for name in taken.processes):
            return [of_process[name] for name in taken.processes]
        known = of_case.get(self._process_key(row), ())
        return known if len(known) == len(taken.values) else ()

    def _process_key(self, row: Row) -> tuple[Any, ...]:
        return (*(row[name] for name in _PROCESSES), axes_key(axes_of(row, self._axes)))


def levels(a: Floats, b: Floats) -> Floats:
    """Return the level of each case: half way between the medians of both arms, (rows, 1)."""
    return np.asarray((medians(a.T) + medians(b.T))[:, None] / 2)
