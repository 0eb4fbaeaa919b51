"""What the persistent cache saved, and what it would save."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.watch import ledger_events as ledger

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded
    from harness.watch.events import Request

USUAL_THRESHOLD_S = 1.0
"""JAX's default of `jax_persistent_cache_min_compile_time_secs`: what compiles faster is not
kept."""

OFF = (ledger.NO_DIRECTORY, ledger.DISABLED)
"""Why nothing was written where the persistent cache was not in use."""


@dataclass
class CacheUse:
    """What the persistent cache did for a program."""

    requests: int = 0
    hits: int = 0
    written: int = 0
    unwritten: Counter[str] = field(default_factory=Counter)
    """Misses that left no entry, by reason."""
    failed: int = 0
    load_s: float = 0.0
    """What hits took, from the request to the executable."""
    saved_s: float = 0.0
    """Compile seconds of hits whose cold seconds are known, less what they took."""
    unknown_hits: int = 0
    """Hits whose cold seconds nobody measured: what they saved is not in `saved_s`."""
    off_s: float = 0.0
    """Compile seconds of programs that were compiled with no cache in use."""
    off_usual_s: float = 0.0
    """Of them, those of programs that JAX's usual threshold would let it keep."""

    @property
    def off(self) -> int:
        """How many requests found no cache in use."""
        return sum(self.unwritten[reason] for reason in OFF)


def requests_of(builds: Iterable[Built]) -> Iterator[tuple[Built, Request]]:
    """Yield every compile request with its build."""
    for built in builds:
        for request in built.line.requests:
            yield built, request


def cold_seconds(profile: Recorded) -> dict[str, float]:
    """Return the median seconds in XLA of each key that was compiled while profiled."""
    found: dict[str, list[float]] = {}
    for _, request in requests_of(profile.builds):
        if request.key and request.compile_ns and request.outcome != "failed":
            found.setdefault(request.key, []).append(request.compile_ns / 1e9)
    return {key: statistics.median(times) for key, times in found.items()}


def saved_s(request: Request, cold: dict[str, float]) -> float | None:
    """Return what a hit saved; None for a miss, and where its cold seconds are not known."""
    if request.outcome != "hit" or request.key not in cold:
        return None
    return cold[request.key] - request.load_ns / 1e9


def cache_use(profile: Recorded) -> CacheUse:
    """Add up what the persistent cache did."""
    use = CacheUse()
    cold = cold_seconds(profile)
    for _, request in requests_of(profile.builds):
        use.requests += 1
        if request.outcome == "hit":
            use.hits += 1
            use.load_s += request.request_ns / 1e9
            saved = saved_s(request, cold)
            use.saved_s += saved or 0.0
            use.unknown_hits += saved is None
        elif request.outcome == "written":
            use.written += 1
        elif request.outcome == "failed":
            use.failed += 1
        else:
            use.unwritten[request.reason] += 1
            if request.reason in OFF:
                compile_s = request.compile_ns / 1e9
                use.off_s += compile_s
                if compile_s >= USUAL_THRESHOLD_S:
                    use.off_usual_s += compile_s
    return use
