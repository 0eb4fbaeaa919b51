"""The clock of a stage: which seconds of both sides are held against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.stages.registry import STAGES

if TYPE_CHECKING:
    from harness.verdicts.pairs import Row

CPU, WALL = "cpu", "wall"


class Taken(NamedTuple):
    """What a row is compared by: a value per process."""

    values: Sequence[float]
    processes: Sequence[str]
    """Which they are of; empty where that is not known."""


def seconds(a: Row, b: Row) -> tuple[Taken, Taken, str]:
    """Return what two rows are compared by, as measured, and on which clock.

    It is that of their stage; wall time where one of them does not know its CPU time, or where only
    one knows that of processes that hold the cases of many workloads.
    """
    sides = [as_measured(row) for row in (a, b)]
    stage = STAGES.get(a["stage"])
    if stage is not None and stage.clock == CPU:
        cpu = [row.get("cpu_samples") or () for row in (a, b)]
        names = [_names(row, "cpu_processes", len(row.get("cpu_samples") or ())) for row in (a, b)]
        apart = [of != one.processes for of, one in zip(names, sides, strict=True)]
        if all(map(len, cpu)) and are_times(*cpu) and apart[0] == apart[1]:
            return Taken(cpu[0], names[0]), Taken(cpu[1], names[1]), CPU
    return sides[0], sides[1], WALL


def as_measured(row: Row) -> Taken:
    """Return the wall time of a row's processes."""
    return Taken(row["samples"], _names(row, "processes", len(row["samples"])))


def _names(row: Row, column: str, count: int) -> Sequence[str]:
    names: Sequence[str] = row.get(column) or []
    return names if len(names) == count and all(names) else []


def are_times(*sides: Iterable[float]) -> bool:
    """Tell whether all values are seconds that something can have taken."""
    return all(0 < value < math.inf for side in sides for value in side)
