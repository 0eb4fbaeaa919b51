"""How many threads of the CPU a comparison may use: how that is set, and how it is verified."""

from __future__ import annotations

import os

VARIABLES = (
    "NPROC",  # what XLA:CPU sizes its thread pool by (jax 0.10 to 0.12); its flags have no effect
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Read by the libraries when they are imported, so the parent sets them."""

THREADS = {
    "one": "pinned to one core, every library told to use one thread",
    "all": "all cores that the process may use",
}
"""How many threads of the CPU a comparison may use; on other targets it is always `all`."""

ONE_AT_MOST = 1.1
"""CPU seconds per second that a process with one thread may use."""

ALL_TOLERANCE = 1.05
"""What all cores may use at most, as a multiple of their number: the two clocks differ a little."""

UNDISTURBED = 0.9
"""Below this many cores at work, others had the processor."""


def environment(threads: str) -> dict[str, str]:
    """Return the variables of a process that computes with `one` thread, or with `all`."""
    return dict.fromkeys(VARIABLES, "1") if threads == "one" else {}


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

    Args:
        threads: `one` or `all`.
        cpu_per_wall: seconds of CPU per second of wall, over the timed region.
        cores: how many the process may run on.
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
