"""Builds that no difference from an earlier one accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.profiles.causes.cause import Cause, Remedy
from harness.profiles.causes.outside import eager_remedy
from harness.profiles.causes.values import place_text
from harness.watch.events import Cleared

if TYPE_CHECKING:
    from harness.profiles.model import Built


def first(built: Built) -> Cause:
    """Return the cause of a function's first build."""
    if built.eager:
        jitted = built.function.around and not built.operation  # as one must
        return Cause("first", remedy=None if jitted else eager_remedy(built))
    if not built.line.derived:
        return Cause("first")
    own = built.function.origin != "library"
    return Cause("first", form="derived", remedy=Remedy("jit differentiated") if own else None)


def first_as_it_is(built: Built, old: Built) -> Cause:
    """Return the cause of the first build of what was traced only to be transformed."""
    remedy = eager_remedy(built) if built.eager else None
    return Cause("first", form="as it is", remedy=remedy, nearest=old.line.id)


def raised(built: Built) -> Cause:
    """Return the cause of a call that raised, where nothing was built."""
    return Cause("raised", after=built.line.error, remedy=Remedy("fix error"))


def failed_before(old: Built) -> Cause:
    """Return the cause, by the build that raised."""
    remedy = Remedy("fix error")
    return Cause("failed before", before=old.line.error, remedy=remedy, nearest=old.line.id)


def unexplained(old: Built | None = None) -> Cause:
    """Return that the cause is not known; nothing is guessed."""
    return Cause("unexplained", nearest=old.line.id if old else 0)


def cache_cleared(built: Built, cleared: Sequence[Cleared]) -> Cause | None:
    """Return the cause where one of `cleared`, since JAX had it, emptied this function's cache."""
    own = (0, built.line.function)
    lines = [line for line in cleared if line.what != "clear_cache" or line.function in own]
    if not lines:
        return None
    line = lines[-1]
    stack = built.process.stacks.get(line.stack)
    place = place_text(stack.frames[-1]) if stack and stack.frames else ""
    if line.what == "backends":
        return Cause("cache cleared", form="backends", place=place, remedy=Remedy("clear less"))
    name = f"{built.function.name}." if line.what == "clear_cache" else ""
    call = f"{name}{line.what}()"
    return Cause("cache cleared", call, place=place, remedy=Remedy("clear less"))


def concurrent(built: Built, had: Sequence[Built]) -> Cause | None:
    """Return the cause where all that built the same were at it, in other threads."""
    new = built.line
    if any(old.line.thread == new.thread or old.line.end_ns <= new.begin_ns for old in had):
        return None
    return Cause("concurrent", remedy=Remedy("call before threads"))


def evicted(since: int, stored: int) -> Cause | None:
    """Return the cause where JAX stores so many (0: all), and as many were built since."""
    if not stored or since < stored:
        return None
    return Cause("evicted", before=str(since), after=str(stored), remedy=Remedy("fewer programs"))
