"""JAX no longer had what it had built: a cache was emptied or full, or another thread was at it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.causes.words import place_text
from harness.profiles.model import Built
from harness.watch.events import Cleared

CLEARED = Kind(name="cache cleared", several="JAX's caches were cleared in between")
CONCURRENT = Kind(name="concurrent")
EVICTED = Kind(name="evicted")


def cleared(built: Built, lines: Sequence[Cleared]) -> Cause | None:
    """Return the cause where one of `lines`, since JAX had it, emptied a cache of this function."""
    own = (0, built.line.function)
    lines = [line for line in lines if line.what != "clear_cache" or line.function in own]
    if not lines:
        return None
    name, line = built.function.name, lines[-1]
    stack = built.process.stacks.get(line.stack)
    at = f" at {place_text(stack.frames[-1])}" if stack and stack.frames else ""
    what = {"clear_cache": f"{name}.clear_cache()", "backends": "the backends"}.get(
        line.what, f"{line.what}()"
    )
    text = f"`{name}` had been built for these arguments; `{what}`{at} threw it away."
    if line.what == "backends":
        text = f"`{name}` had been built, but the backends were cleared{at}."
    remedy = "Clear caches only where memory needs it, not between calls that repeat."
    return Cause(CLEARED.name, what, sentence=text, remedy=remedy)


def concurrent(built: Built, had: Sequence[Built]) -> Cause | None:
    """Return the cause where all that built the same were at it, in other threads."""
    new = built.line
    if any(old.line.thread == new.thread or old.line.end_ns <= new.begin_ns for old in had):
        return None
    return Cause(
        CONCURRENT.name,
        sentence=f"Another thread was building `{built.function.name}` for the same arguments "
        "when this one began.",
        remedy="Call it once before the threads start.",
    )


def evicted(built: Built, since: int, kept: int) -> Cause | None:
    """Return the cause where JAX keeps `kept` (0: all), and as many were built since."""
    if not kept or since < kept:
        return None
    return Cause(
        EVICTED.name,
        before=f"{since:,} others since",
        after=f"{kept:,} are kept",
        sentence=f"`{built.function.name}` had been built for these arguments, but {since:,} "
        f"other programs were built since, and JAX keeps {kept:,}.",
        remedy="Build fewer different programs: the other causes say which come in large numbers.",
    )
