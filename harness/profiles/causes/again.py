"""Builds without a difference from an earlier one, and what JAX or a library makes by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.jaxhooks.events import Cleared
from harness.profiles.causes.cause import Cause, Remedy
from harness.profiles.causes.values import place_text
from harness.profiles.names import package_of

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


def as_it_is(built: Built) -> Cause:
    """Return the cause of the first build of what was only differentiated or batched before."""
    remedy = eager_remedy(built) if built.eager else None
    return Cause("first", form="as it is", remedy=remedy)


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


_KEYS = re.compile(r"key<|uint32\[\d+,[24]\]$")
"""Types of several random keys, of threefry or rbg; JAX splits typed ones by their numbers."""


def is_iteration(built: Built) -> bool:
    """Return whether it parts an array for Python's `for`, `jax.Array.__iter__`: no random keys."""
    given = built.arguments.leaves if built.arguments is not None else ()
    keys = any(_KEYS.match(leaf.aval) for leaf in given)
    return built.eager and built.function.name == "unstack" and not keys


def is_transformed(built: Built) -> bool:
    """Return whether it is known that a function was differentiated or batched.

    A function of JAX's that runs while another is traced (`jax.ensure_compile_time_eval`) is also
    known by its trace alone.
    """
    at_once = built.eager and built.line.parent
    return bool(built.line.derived) and not at_once


def running_library(built: Built) -> str:
    """Return the library that called JAX on behalf of the program; empty if none stood between."""
    if built.call_site.origin != "program" or built.frames[-1].origin != "library":
        return ""
    return package_of(built.frames[-1].file)


def eager_remedy(built: Built) -> Remedy | None:
    """Return what to do about an operation of JAX's that runs by itself."""
    if not built.call_site.file or not built.times("compile"):
        return None
    if is_iteration(built):
        return Remedy("numpy to iterate")
    if library := running_library(built):
        return Remedy("persistent cache", library=library)
    if built.function.around and built.operation:  # a loop with the user's functions
        return Remedy("jit around loop")
    if built.function.around:
        return Remedy("jit outside loop")
    return Remedy("jit differentiated" if is_transformed(built) else "inside jit")


def library_remedy(built: Built, library: str, passes: bool = False) -> Remedy | None:
    """Return what can be done about what a library makes each time, from the user's own line.

    Args:
        built: what was built.
        library: who makes it.
        passes: whether what it closes over differs.
    """
    site = built.call_site
    if site.origin != "program":
        return None
    kind = "library object and pass" if passes else "library object"
    return Remedy(kind, library=library, place=place_text(site))
