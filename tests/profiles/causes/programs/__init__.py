"""Small programs, each of which says what it must be found to build, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax


class Small(NamedTuple):
    """A program that runs under a profile of its own, after `jax.clear_caches()`."""

    name: str
    run: Callable[[], None]
    builds: tuple[str, ...]
    """`function: cause argument` of every build, in order."""
    operations: bool
    """Whether JAX's own operations are among them."""


ALL: list[Small] = []


def declare(name, run, *expected, operations=False):
    """Declare a program by what it builds; nothing else may be found."""
    ALL.append(Small(name, run, expected, operations))


def builds(*expected, operations=False):
    """Declare a function to be a program, of its own name."""
    return lambda run: declare(run.__name__, run, *expected, operations=operations)


def calls(made, *causes, name="", **options):
    """Declare that a function is jitted once, and called with each of what `made()` returns."""

    def decorate(function):
        def run():
            jitted = jax.jit(function, **options)
            for given in made():
                jitted(*given)

        of = function.__name__
        declare(name or of, run, *(f"{of}: {cause}" for cause in ("first", *causes)))

    return decorate
