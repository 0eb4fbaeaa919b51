"""The clock of a stage: which seconds of both sides are held against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from harness.stages.registry import STAGES

if TYPE_CHECKING:
    from harness.frame.pairs import Row

CPU, WALL = "cpu", "wall"


def seconds(a: Row, b: Row) -> tuple[Sequence[float], Sequence[float], str]:
    """Return what two rows are compared by, a value per process, and on which clock.

    It is that of their stage; wall time where one of them does not know its CPU time.
    """
    stage = STAGES.get(a["stage"])
    one, other = (row.get("cpu_samples") or () for row in (a, b))
    if stage is not None and stage.clock == CPU and one and other and are_times(one, other):
        return one, other, CPU
    return a["samples"], b["samples"], WALL


def are_times(*sides: Iterable[float]) -> bool:
    """Tell whether all values are seconds that something can have taken."""
    return all(0 < value < math.inf for side in sides for value in side)
