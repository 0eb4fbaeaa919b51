"""What a hit of the persistent cache saved: what others took to compile it, less loading it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from harness.watch.events import Request


def cold_seconds(events: Iterable[Request]) -> dict[str, float]:
    """Return the median seconds in XLA of every key that some process compiled."""
    found: dict[str, list[float]] = {}
    for event in events:
        if event.key and event.compile_ns and event.outcome != "failed":
            found.setdefault(event.key, []).append(event.compile_ns / 1e9)
    return {key: statistics.median(seconds) for key, seconds in found.items()}


def saved_s(event: Request, cold: dict[str, float]) -> float | None:
    """Return the compile seconds that a hit saved; None for a miss or without a cold figure."""
    if event.outcome != "hit" or event.key not in cold:
        return None
    return cold[event.key] - event.load_ns / 1e9
