"""Words that several causes share: of functions, places, libraries and JAX's own operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from harness.profiles.causes.cause import Cause, Change, Look, Pair
from harness.profiles.causes.values import static_text
from harness.profiles.names import package_of

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.watch import events

DERIVED = ", differentiated or batched outside jit"

MENTIONED = 3
"""Names that a sentence tells of."""

FILTER_JIT = "equinox.filter_jit"


def place_text(frame: events.Frame) -> str:
    """Return a line, by the name of its file alone: `train.py:88`."""
    return f"{PurePath(frame.file).name}:{frame.line}"


def names_text(arguments: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    names = [f"`{name}`" for name in arguments[:MENTIONED]]
    rest = len(arguments) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def jax_function(built: Built) -> str:
    """Return one of JAX's own functions, and who called it: JAX's `add` by optax at fit.py:8."""
    known = f"JAX's `{built.function.name}`"
    if not built.call_site.file:
        return known
    library = _running_library(built)
    return f"{known}{f' by {library}' if library else ''} at {place_text(built.call_site)}"


def alone(built: Built) -> str:
    """Return how one of JAX's own functions came to be built by itself."""
    if _transformed(built):
        return DERIVED
    return ", run by itself" if built.times("compile") else ""


def of_operations(*names: str) -> Look:
    """Return what looks at those parameters of JAX's own operations that stand for a cause."""

    def look(pair: Pair, statics: tuple[events.Static, events.Static]) -> list[Change] | None:
        before, after = statics
        if not pair.new.eager or after.name not in names:
            return None
        return [Change(after.name, static_text(before, after), static_text(after, before))]

    return look


INSIDE_JIT = "Do it inside the jitted function, or build small arrays with numpy."
"""What to do about one operation, where it is not known which function to jit."""


def eager_remedy(built: Built) -> str:
    """Return what to do about an operation of JAX's that runs by itself."""
    if not built.call_site.file or not built.times("compile"):
        return ""
    library = _running_library(built)
    if library:
        return (
            f"It is {library} that runs it: JAX's persistent cache keeps it for the next run "
            "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)."
        )
    if built.function.through and built.operation:  # a loop with the user's functions
        return "Jit the function that it is in, or define what it is given once, outside."
    if built.function.through:
        return "Jit it once, outside the loop or function that does so, and keep the result."
    if _transformed(built):
        return "Jit the whole function that is differentiated or batched."
    return INSIDE_JIT


def library_remedy(built: Built, library: str) -> str:
    """Return what can be done about what a library makes anew, from the user's own line."""
    site = built.call_site
    if site.origin != "program":
        return ""
    return (
        f"{library or 'A library'} makes it, used at {place_text(site)}: make the object that is "
        f"used there once, and use it again; where that changes nothing, {library or 'the library'}"
        " makes a new one in every call."
    )


def options_remedy(built: Built, what: Change) -> str:
    """Return what to do about a function that is jitted in several ways."""
    if built.function.origin == "library":
        return library_remedy(built, package_of(built.function.file))
    return f"Jit `{built.function.name}` once, with one set of options."


def _running_library(built: Built) -> str:
    """Return the library that called JAX on behalf of the program; empty if none stood between."""
    if built.call_site.origin != "program" or built.frames[-1].origin != "library":
        return ""
    return package_of(built.frames[-1].file)


def _transformed(built: Built) -> bool:
    """Return whether it is known that a function was differentiated or batched.

    A function of JAX's that runs while another is traced (`jax.ensure_compile_time_eval`) is also
    known by its trace alone.
    """
    at_once = built.eager and built.line.parent
    return bool(built.line.derived) and not at_once


_OBJECT = re.compile(r"object \d+")
"""What objects of one text are told apart by: it says nothing to a reader."""


def said(cause: Cause, before: bool = True) -> str:
    """Return a cause in words.

    Args:
        cause: of a build.
        before: whether it was recorded what was built earlier.
    """
    if cause.kind == "first":
        if before:
            return "its first build"
        return (
            "its first build since the budget began; open the budget before the warm-up to see "
            "what changed"
        )
    change = f"{cause.before} -> {cause.after}" if cause.before or cause.after else ""
    if not cause.sentence:
        parts = (cause.kind, cause.argument and f"`{cause.argument}`", change)
        return " ".join(filter(None, parts))
    told = cause.sentence.rstrip(".")
    numbered = _OBJECT.sub("", cause.before) == _OBJECT.sub("", cause.after)
    if change and not numbered and not (cause.before in told and cause.after in told):
        told = f"{told} ({cause.argument or cause.kind}: {change})"
    return told
