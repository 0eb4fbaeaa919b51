"""What Dask's nanny puts into the environment of its worker, and a measurement must not have.

Its defaults are meant for many tasks at once in one process. In a process that measures they keep
NumPy to one thread, make the C library give memory back all the time, and give every process the
same seed of Python's hashes: times are others then, and processes more alike than they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import psutil

DEFAULTS = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "6640",
}
"""`distributed.nanny.pre-spawn-environ` of Dask's own configuration (distributed 2026.8), and the
seed that its nanny adds."""


def undo(worker: Any) -> None:
    """Take it out of the environment of this process, a Dask worker, from which others inherit.

    What the nanny itself was started with stays, and so does what Dask was configured to set.
    """
    if not worker.nanny:
        return
    try:
        given = psutil.Process(os.getppid()).environ()
    except (psutil.Error, OSError):
        return
    for name in added(os.environ, given):
        del os.environ[name]


def added(found: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return the variables of a worker that its nanny has added to what that was `given`."""
    return [
        name for name, value in DEFAULTS.items() if found.get(name) == value and name not in given
    ]
