"""The one value of each process that is compared: calibrated where that means the same twice."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from harness.stages.registry import calibrated_by
from harness.stages.stage import LOOP
from harness.verdicts.pairs import CASE, Pairs, Row, axes_key, axes_of

CALIBRATED, RAW, INTERLEAVED = "calibrated", "raw", "interleaved"

_PROCESSES = (
    *("machine", *(name for name in CASE if name != "stage"), "version"),
    *("started_at", "effort", "n_processes"),
)
_CACHE_FLAGS = ("JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_COMPILATION_CACHE")
"""Flags that scenarios set; the reference is measured without the cache in all of them."""


class Compared(NamedTuple):
    """One value per process of both sides, and what they are."""

    a: Sequence[float] = ()
    b: Sequence[float] = ()
    basis: str = ""
    problem: str = ""
    """Why they cannot be compared."""


def divisor(a: Row, b: Row, across: bool = False) -> str:
    """Return what of the reference the values of two rows can be divided by, or "" for nothing.

    The reference program is traced, lowered and compiled by the JAX that is measured. Where JAX,
    its flags or the target differ, dividing by it would hide a change that all programs share; and
    in another scenario of the cache the process has compiled other things before it, or nothing.
    The plain Python loop is left, which differs with the machine and with Python only. Between
    machines nothing is, unless the difference of their references is what is asked for (`across`).
    """
    if (a["machine"] != b["machine"] and not across) or a["python"] != b["python"]:
        return ""
    same = all(a[name] == b[name] for name in ("jax", "jaxlib", "target", "scenario"))
    if same and _same_flags(a["environment"], b["environment"]):
        return calibrated_by(a["stage"])
    return LOOP


@lru_cache(maxsize=1024)
def _same_flags(before: str, after: str) -> bool:
    return before == after or _compiling(before) == _compiling(after)


def _compiling(text: str) -> tuple[Any, ...]:
    """Return the parts of an environment that decide how the reference is compiled."""
    try:
        environment = json.loads(text)
    except (TypeError, ValueError):
        return ()
    if not isinstance(environment, dict):
        return ()
    flags = environment.get("flags")
    kept = {
        name: value
        for name, value in (flags.items() if isinstance(flags, dict) else ())
        if not name.startswith(_CACHE_FLAGS)
    }
    return (kept, environment.get("plugins"), environment.get("x64"))


class Calibration:
    """What is compared of the pairs of two arms."""

    def __init__(self, pairs: Pairs) -> None:
        """Take all pairs of the arms: what the Python loop took is read off any stage."""
        self._pairs = pairs

    def compared(self, a: Row, b: Row, interleaved: bool, across: bool) -> Compared:
        """Return what to compare of a pair.

        Raw seconds where the arms took turns, or are of unlike machines (`across`); else calibrated
        values where both sides have them, by something that they share (:func:`divisor`).
        """
        for arm, row in (("A", a), ("B", b)):
            wrong = [value for value in row["samples"] if not 0 < value < math.inf]
            if wrong:
                return Compared(problem=f"{arm} has a sample that is no time: {wrong[0]} s")
            if not len(row["samples"]):
                return Compared(problem=f"{arm} has no samples")
        raw = Compared(a["samples"], b["samples"], INTERLEAVED if interleaved else RAW)
        if interleaved or across:
            return raw
        one, other = self._calibrated(a, b)
        complete = len(one) == len(raw.a) and len(other) == len(raw.b)
        return Compared(one, other, CALIBRATED) if complete and _are_times(one, other) else raw

    def ratio(self, a: Row, b: Row) -> float:
        """Return B / A of the geometric means of calibrated values, whatever machines they are of.

        NaN where that is not known of both sides.
        """
        one, other = self._calibrated(a, b, across=True)
        if len(one) and len(other) and _are_times(one, other):
            return statistics.geometric_mean(other) / statistics.geometric_mean(one)
        return math.nan

    def _calibrated(
        self, a: Row, b: Row, across: bool = False
    ) -> tuple[Sequence[float], Sequence[float]]:
        by = divisor(a, b, across)
        if not by:
            return (), ()
        if by == calibrated_by(a["stage"]):
            return a["calibrated_samples"], b["calibrated_samples"]
        loops_a, loops_b = self._loops
        return self._by_loop(a, loops_a), self._by_loop(b, loops_b)

    def _by_loop(self, row: Row, loops: dict[Any, list[float]]) -> list[float]:
        """Return samples / the loop of the same process; [] where it is not known."""
        known = loops.get(self._process_key(row), [])
        if len(known) != len(row["samples"]):
            return []
        return [value / loop for value, loop in zip(row["samples"], known, strict=True)]

    @cached_property
    def _loops(self) -> tuple[dict[Any, list[float]], dict[Any, list[float]]]:
        """What the plain Python loop took in the processes of the rows of each arm."""
        return self._loops_of(a for a, _ in self._pairs.pairs), self._loops_of(
            b for _, b in self._pairs.pairs
        )

    def _loops_of(self, rows: Iterable[Row | None]) -> dict[Any, list[float]]:
        loops = {}
        for row in rows:
            if row is None or calibrated_by(row["stage"]) != LOOP:
                continue
            seconds, calibrated = row["samples"], row["calibrated_samples"]
            if len(seconds) == len(calibrated) and all(one > 0 for one in calibrated):
                loops[self._process_key(row)] = [
                    value / one for value, one in zip(seconds, calibrated, strict=True)
                ]
        return loops

    def _process_key(self, row: Row) -> tuple[Any, ...]:
        return (*(row[name] for name in _PROCESSES), axes_key(axes_of(row, self._pairs.axes)))


def _are_times(*sides: Iterable[float]) -> bool:
    return all(0 < value < math.inf for side in sides for value in side)
