"""Small programs, each of which says what it must be found to build, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Small(NamedTuple):
    """A program that runs under a profile of its own, after `jax.clear_caches()`."""

    name: str
    run: Callable[[], None]
    builds: tuple[str, ...]
    """`function: cause argument` of every build, in order."""
    operations: bool
    """Whether JAX's own operations are among them."""


ALL: list[Small] = []


def builds(*expected, operations=False):
    """Declare a program by what it builds; nothing else may be found."""

    def declare(run):
        ALL.append(Small(run.__name__, run, expected, operations))

    return declare
