"""The environment variables of a comparison's process: set by the parent, verified by the child.

Imports nothing that reads such a variable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.sides import threads as threading_rules
from harness.sides.registry import SIDES
from harness.targets.host import affinity

READERS = ("numpy", "jax", "cupy", "scipy", "numba", "numexpr")
"""Packages that read variables when they are imported."""


def owned(name: str) -> bool:
    """Tell whether a comparison decides on a variable, so that the caller's does not reach it."""
    owned_by_sides = {beginning for side in SIDES.values() for beginning in side.owns}
    return name in threading_rules.VARIABLES or name.startswith(tuple(owned_by_sides))


def variables(backend: str, threads: str, precision: str, folder: str) -> dict[str, str]:
    """Return what the process of one side needs.

    Args:
        backend: one of :data:`harness.sides.registry.SIDES`.
        threads: one of :data:`harness.sides.threads.THREADS`.
        precision: of float32 products, for a backend that reads it from the environment.
        folder: where CuPy keeps its compiled kernels; empty for other backends.
    """
    return threading_rules.environment(threads) | SIDES[backend].environment(precision, folder)


def problems(wanted: Mapping[str, str], modules: Iterable[str] | None = None) -> list[str]:
    """Return what is wrong with the environment of this process, before anything heavy is loaded.

    `modules` are the names of those that are loaded already; None means those of this process.
    """
    loaded = set(sys.modules if modules is None else modules)
    found = [
        f"environment: {name} was loaded before its variables were verified"
        for name in READERS
        if name in loaded
    ]
    for name, value in wanted.items():
        actual = os.environ.get(name)
        if actual != value:
            found.append(f"environment: {name} is {actual!r}; the comparison needs {value!r}")
    return found


@dataclass(frozen=True)
class ProcessState:
    """What is known of a comparison's process before anything is measured."""

    cores: int
    """How many it may run on."""
    problems: Sequence[str] = ()
    """What is wrong with its environment: no record of it is comparable then."""
    labels: Sequence[str] = ()


def verified(wanted: Mapping[str, str], threads: str) -> ProcessState:
    """Verify this process's environment, and keep it to the cores that `threads` allows."""
    found = problems(wanted)
    labels = threading_rules.pin(threads)
    return ProcessState(affinity(), found, labels)
