"""What to do about programs of JAX's own functions, and about what a library makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.profiles.causes.cause import Remedy
from harness.profiles.causes.values import place_text
from harness.profiles.names import package_of

if TYPE_CHECKING:
    from harness.profiles.model import Built

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
