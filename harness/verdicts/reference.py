"""Whether the reference of two rows means the same, and what else to divide by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from harness.stages.registry import calibrated_by
from harness.verdicts.pairing import axis_text
from harness.verdicts.rows import Row

REFERENCE, LOOP, NONE = "reference", "loop", "none"

_PROCESSES = (
    *("machine", "workload", "version", "target", "transform", "precision", "scenario"),
    *("started_at", "effort", "n_processes"),
)
_CACHE_FLAGS = ("JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_COMPILATION_CACHE")
"""Flags that scenarios set; the reference is measured without the cache in all of them."""


def yardstick(a: Row, b: Row, across: bool = False) -> str:
    """Return by what the values of two rows can be divided: `reference`, `loop` or `none`.

    The reference program is traced, lowered and compiled by the JAX that is measured. Where JAX,
    its flags or the target differ, dividing by it would hide a change that all programs share; and
    in another scenario of the cache the process has compiled other things before it, or nothing.
    The plain Python loop is left, which differs with the machine and with Python only. Between
    machines nothing is, unless the difference of their references is what is asked for (`across`).
    """
    if (a["machine"] != b["machine"] and not across) or a["python"] != b["python"]:
        return NONE
    if calibrated_by(a["stage"]) == "loop":
        return REFERENCE
    same = all(a[name] == b[name] for name in ("jax", "jaxlib", "target", "scenario"))
    return REFERENCE if same and _same_flags(a["environment"], b["environment"]) else LOOP


@lru_cache(maxsize=1024)
def _same_flags(before: str, after: str) -> bool:
    return before == after or _compiling(before) == _compiling(after)


def _compiling(text: str) -> tuple[Any, ...]:
    """Return the parts of an environment that decide how the reference is compiled."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return ()
    if not isinstance(found, dict):
        return ()
    flags = found.get("flags")
    kept = {
        name: value
        for name, value in (flags.items() if isinstance(flags, dict) else ())
        if not name.startswith(_CACHE_FLAGS)
    }
    return (kept, found.get("plugins"), found.get("x64"))


class Loops:
    """What the plain Python loop took in the processes of rows."""

    def __init__(self, rows: Iterable[Row | None], axes: Sequence[str]) -> None:
        self._axes = axes
        self._found: dict[tuple[Any, ...], list[float]] = {}
        for row in rows:
            if row is None or calibrated_by(row["stage"]) != "loop":
                continue
            seconds, calibrated = row["samples"], row["calibrated_samples"]
            if len(seconds) == len(calibrated) and all(one > 0 for one in calibrated):
                self._found[self._key(row)] = [
                    value / one for value, one in zip(seconds, calibrated, strict=True)
                ]

    def calibrated(self, row: Row) -> list[float]:
        """Return the samples of a row / the loop of the same process; [] where it is not known."""
        loops = self._found.get(self._key(row), [])
        if len(loops) != len(row["samples"]):
            return []
        return [value / loop for value, loop in zip(row["samples"], loops, strict=True)]

    def _key(self, row: Row) -> tuple[Any, ...]:
        axes = (axis_text(row[axis]) for axis in self._axes if axis in row)
        return (*(row[name] for name in _PROCESSES), *axes)
