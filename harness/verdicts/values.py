"""The one value of each process that is compared: calibrated where that means the same twice."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from harness.verdicts.reference import LOOP, REFERENCE, Loops, yardstick
from harness.verdicts.rows import Row

CALIBRATED, RAW, INTERLEAVED = "calibrated", "raw", "interleaved"


class Values(NamedTuple):
    """One value per process of both sides, and what they are."""

    a: Sequence[float]
    b: Sequence[float]
    basis: str
    problem: str = ""
    """Why they cannot be compared."""


class Chooser:
    """Chooses the values of pairs of rows."""

    def __init__(
        self, first: list[Row | None], second: list[Row | None], axes: Sequence[str]
    ) -> None:
        self._rows = (first, second)
        self._axes = axes
        self._loops: tuple[Loops, Loops] | None = None

    def values(self, a: Row, b: Row, interleaved: bool, across: bool = False) -> Values:
        """Return what to compare of a pair.

        Raw seconds where the arms took turns, or are of unlike machines (`across`); else calibrated
        values where both sides have them, by something that they share
        (:func:`harness.verdicts.reference.yardstick`).
        """
        for arm, row in (("A", a), ("B", b)):
            if not all(0 < value < math.inf for value in row["samples"]):
                wrong = [value for value in row["samples"] if not 0 < value < math.inf]
                problem = f"{arm} has a sample that is no time: {wrong[0]} s"
                return Values((), (), "", problem)
            if not len(row["samples"]):
                return Values((), (), "", f"{arm} has no samples")
        if interleaved:
            return Values(a["samples"], b["samples"], INTERLEAVED)
        if across:
            return Values(a["samples"], b["samples"], RAW)
        one, other = self._calibrated(a, b)
        complete = len(one) == len(a["samples"]) and len(other) == len(b["samples"])
        if complete and all(0 < value < math.inf for side in (one, other) for value in side):
            return Values(one, other, CALIBRATED)
        return Values(a["samples"], b["samples"], RAW)

    def calibrated_ratio(self, a: Row, b: Row) -> float:
        """Return B / A of the geometric means of calibrated values, whatever machines they are of.

        NaN where that is not known of both sides.
        """
        one, other = self._calibrated(a, b, across=True)
        if len(one) and len(other) and all(0 < v < math.inf for v in (*one, *other)):
            return statistics.geometric_mean(other) / statistics.geometric_mean(one)
        return math.nan

    def _calibrated(
        self, a: Row, b: Row, across: bool = False
    ) -> tuple[Sequence[float], Sequence[float]]:
        by = yardstick(a, b, across)
        if by == REFERENCE:
            return a["calibrated_samples"], b["calibrated_samples"]
        if by != LOOP:
            return (), ()
        if self._loops is None:
            self._loops = Loops(self._rows[0], self._axes), Loops(self._rows[1], self._axes)
        return self._loops[0].calibrated(a), self._loops[1].calibrated(b)
