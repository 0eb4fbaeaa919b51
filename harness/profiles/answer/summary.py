"""What a program's building cost, as data: shares, counts, and what the persistent cache did."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.cache.saved import cold_seconds, saved_s
from harness.profiles.causes.kinds import BLAMELESS
from harness.profiles.figures import function_key, requests_of
from harness.profiles.model import Built, count_of
from harness.watch import events
from harness.watch.events import Import, Request

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

USUAL_THRESHOLD_S = 1.0
"""JAX's default of `jax_persistent_cache_min_compile_time_secs`: what compiles faster is not
stored."""

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
    works = built.process.works if built.function.through and built.work else {}
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
    """What the persistent cache did for a program, and what it would."""

    requests: int
    use: Literal["on", "off", "disabled"]
    hits: int
    hit_s: float
    saved_s: float | None
    """By those hits whose compile time is known; None where it is of none."""
    saved_known: int
    written: int
    failed: int
    unwritten: Counter[str]
    """By reason."""
    compile_s: float
    """In XLA, of what is off, or was not written as it compiled too fast."""
    usual_s: float
    """Of that: what compiles so long that JAX writes it unless it is told otherwise."""


def cache_use(profile: Recorded) -> CacheUse:
    """Return what the persistent cache did."""
    by_outcome: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests_of(profile.builds):
        by_outcome[request.outcome].append(request)
    count, failed = sum(map(len, by_outcome.values())), len(by_outcome["failed"])
    hits, unwritten = by_outcome["hit"], by_outcome["unwritten"]
    off = [request for request in unwritten if request.reason in _OFF]
    cold = cold_seconds(requests_of(profile.builds))
    saved = [seconds for hit in hits if (seconds := saved_s(hit, cold)) is not None]
    unused = bool(off) and len(off) == count - failed
    slow = off if unused else [one for one in unwritten if one.reason == events.BELOW_TIME]
    disabled = any(request.reason == events.DISABLED for request in off)
    compile_s = [request.compile_ns / 1e9 for request in slow]
    return CacheUse(
        count,
        "on" if not unused else "disabled" if disabled else "off",
        len(hits),
        sum(hit.request_ns for hit in hits) / 1e9,
        max(0.0, sum(saved)) if saved else None,
        len(saved),
        len(by_outcome["written"]),
        failed,
        Counter(request.reason for request in unwritten),
        sum(compile_s),
        sum(seconds for seconds in compile_s if seconds >= USUAL_THRESHOLD_S),
    )


Nothing = Literal["not imported", "not used"]


def why_nothing(profile: Recorded) -> Nothing:
    """Return why nothing was built: JAX was not imported, or nothing was traced or compiled."""
    command = all(process.started.how != "context" for process in profile.processes)
    imported = any(process.of(Import) for process in profile.processes)
    return "not imported" if command and not imported else "not used"
