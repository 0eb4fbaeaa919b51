"""The process of a side: its variables and cores, set by the parent and verified by the child.

Imports nothing that reads such a variable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from harness.baselines.registry import SIDES
from harness.targets.host import affinity

READERS = ("numpy", "jax", "cupy", "scipy", "numba", "numexpr")
"""Packages that read variables when they are imported."""

THREAD_VARIABLES = (
    "NPROC",  # what XLA:CPU sizes its thread pool by (jax 0.10 to 0.12); its flags have no effect
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

ONE_AT_MOST = 1.1
"""CPU seconds per second that a process with one thread may use."""

ALL_TOLERANCE = 1.05
"""What all cores may use at most, as a multiple of their number: the two clocks differ a little."""

UNDISTURBED = 0.9
"""Below this many cores at work, others had the processor."""


def owned(name: str) -> bool:
    """Tell whether a comparison decides on a variable, so that the caller's does not reach it."""
    beginnings = tuple(beginning for side in SIDES.values() for beginning in side.owns)
    return name in THREAD_VARIABLES or name.startswith(beginnings)


def variables(backend: str, threads: str, precision: str, folder: str) -> dict[str, str]:
    """Return what the process of one side needs.

    `backend` and `threads` are of :mod:`harness.baselines.registry`; `folder` is where CuPy stores
    its kernels.
    """
    cores = dict.fromkeys(THREAD_VARIABLES, "1") if threads == "one" else {}
    return cores | SIDES[backend].environment(precision, folder)


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
    wrong, labels = problems(wanted), pin(threads)
    return ProcessState(affinity(), wrong, labels)


def problems(wanted: Mapping[str, str], modules: Container[str] | None = None) -> list[str]:
    """Return what is wrong with the environment of this process, before anything heavy is loaded.

    `modules` are those that are loaded already.
    """
    early = [
        f"environment: {name} was loaded before its variables were verified"
        for name in READERS
        if name in (sys.modules if modules is None else modules)
    ]
    return early + [
        f"environment: {name} is {os.environ.get(name)!r}; the comparison needs {value!r}"
        for name, value in wanted.items()
        if os.environ.get(name) != value
    ]


def pin(threads: str) -> list[str]:
    """Keep this process, before it has any threads, on one core; return what could not be done.

    The last allowed core, because interrupts are usually served by the first.
    """
    if threads != "one":
        return []
    if not hasattr(os, "sched_setaffinity"):  # macOS
        return ["unpinned"]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return []


def contradiction(threads: str, cpu_per_wall: float, cores: int) -> str:
    """Return how the cores that were at work contradict the rule, or nothing.

    `cpu_per_wall` is seconds of CPU per second of wall, over the timed region, and `cores` how
    many the process may run on.
    """
    limit = ONE_AT_MOST if threads == "one" else cores * ALL_TOLERANCE
    if cpu_per_wall <= limit:
        return ""
    return (
        f"threads: {cpu_per_wall:.2f} cores were at work, more than the {limit:.2f} that "
        f"'{threads}' allows"
    )


def disturbed(cpu_per_wall: float) -> bool:
    """Tell whether the process had to wait for a processor while it was timed."""
    return cpu_per_wall < UNDISTURBED
