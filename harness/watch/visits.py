"""Visits to the slow path that built nothing: counted, and written at most once a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.watch.call_sites import Places

EVERY_NS = 1_000_000_000

MOST = 10_000
"""Kinds of visits that are counted before they are written."""


@dataclass
class _Count:
    stack: Places
    times: int = 0
    took_ns: int = 0


class Counted:
    """Counts visits by function, stack and thread."""

    def __init__(self, write: Callable[[Any, Places, int, int, float], None], now_ns: int) -> None:
        self._write = write
        self._counts: dict[tuple[Any, Any, int], _Count] = {}
        self._written_ns = now_ns

    def add(self, function: Any, stack: Places, thread: int, begin_ns: int, end_ns: int) -> None:
        """Count a visit, and write all counts if the last ones are a second old."""
        found = self._counts.get((function, stack.key, thread))
        if found is None:
            found = self._counts[function, stack.key, thread] = _Count(stack)
        found.times += 1
        found.took_ns += end_ns - begin_ns
        if end_ns - self._written_ns > EVERY_NS or len(self._counts) > MOST:
            self.flush(end_ns)

    def flush(self, now_ns: int) -> None:
        """Write what was counted, and begin anew."""
        self._written_ns = now_ns
        counts, self._counts = self._counts, {}
        for (function, _, thread), count in counts.items():
            self._write(function, count.stack, thread, count.times, count.took_ns / 1e9)
