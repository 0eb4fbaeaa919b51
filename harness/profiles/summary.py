"""What a program's building cost, as data: shares, counts, and what the persistent cache did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.cache.ledger import Summary, summarize
from harness.cache.saved import CacheSetting, cache_settings
from harness.jaxhooks import events
from harness.jaxhooks.events import Import
from harness.profiles.causes.kinds import BLAMELESS
from harness.profiles.figures import function_key, requests_of
from harness.profiles.model import Built, count_of

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_OFF = (events.NO_DIRECTORY, events.DISABLED)
"""Why nothing was written where the persistent cache was not in use."""

Share = Literal["avoidable", "again", "unexplained", "first", "outside jit"]
SHARES: tuple[Share, ...] = Share.__args__  # type: ignore[attr-defined]


def shares(profile: Recorded) -> Counter[Share]:
    """Return the nanoseconds of building by what they went into.

    Builds that a function had before are avoidable where a remedy surely leaves them out.
    """
    taken: Counter[Share] = Counter()
    for built in profile.builds:
        taken[_share(built, profile)] += built.build_ns
    return taken


def _share(built: Built, profile: Recorded) -> Share:
    cause = profile.cause_of(built)
    works = built.process.works if built.function.around and built.work else {}
    is_again = works.get(built.work, built.line.id) != built.line.id  # another function object
    if built.eager and not is_again:
        return "outside jit"
    if cause.kind in BLAMELESS:
        return "first"
    if cause.kind == "unexplained":
        return "unexplained"
    return "avoidable" if cause.remedy and cause.remedy.sure else "again"


@dataclass(frozen=True)
class Counts:
    """How much was built."""

    builds: int
    functions: int
    processes: int
    threads: int
    """1 where each process builds on one."""
    done: dict[str, int]
    """`traced`, `lowered`, `compiled`, `loaded`: how often."""


def counts(profile: Recorded) -> Counts:
    """Return how much was built, the stages ahead of time of one program once."""
    builds = profile.builds
    by_function: dict[object, list[Built]] = {}
    for built in builds:
        by_function.setdefault(function_key(built.function), []).append(built)
    threads = {(built.process.name, built.line.thread) for built in builds}
    several = len(threads) > len({name for name, _ in threads})
    return Counts(
        sum(map(count_of, by_function.values())),
        len(by_function),
        len(profile.processes),
        len(threads) if several else 1,
        {
            "traced": sum(built.times("trace") for built in builds),
            "lowered": sum(built.times("lower") for built in builds),
            "compiled": sum(built.compiles for built in builds),
            "loaded": sum(built.hits for built in builds),
        },
    )


@dataclass(frozen=True)
class CacheUse:
    """What the persistent cache did for a program, and what its settings would save."""

    use: Literal["on", "off", "disabled"]
    did: Summary
    """Hits, writes, reasons, errors, and settings that had no effect."""
    hit_s: float
    """The hits' requests as a whole."""
    settings: tuple[CacheSetting, ...]
    """Those that would save something, or are needed for another that does."""
    left_s: Mapping[str, float]
    """Seconds of `trace` and `lower`, which no cache saves."""


def cache_use(profile: Recorded) -> CacheUse:
    """Return what the persistent cache did."""
    requests = [*requests_of(profile.builds)]
    off = [one for one in requests if one.outcome == "unwritten" and one.reason in _OFF]
    unused = bool(off) and len(off) == sum(one.outcome != "failed" for one in requests)
    disabled = any(request.reason == events.DISABLED for request in off)
    stages = ("trace", "lower")
    return CacheUse(
        "on" if not unused else "disabled" if disabled else "off",
        summarize(requests),
        sum(one.request_ns for one in requests if one.outcome == "hit") / 1e9,
        tuple(cache_settings(requests)),
        {stage: sum(built.stage_ns(stage) for built in profile.builds) / 1e9 for stage in stages},
    )


Nothing = Literal["not imported", "not used"]


def why_nothing(profile: Recorded) -> Nothing:
    """Return why nothing was built: JAX was not imported, or nothing was traced or compiled."""
    command = all(process.started.how != "context" for process in profile.processes)
    imported = any(process.of(Import) for process in profile.processes)
    return "not imported" if command and not imported else "not used"
