"""What a worker knows of its machine: GPUs, packages, devices in use, and what Dask has set."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from harness.records import environment
from harness.records.schema import digest

# The NVIDIA GPUs that this process may use, found out without waking JAX or CUDA

ANSWER_S = 30.0
"""How long the driver may take to answer."""


class Gpu(NamedTuple):
    """A GPU, or a part of one."""

    id: str
    """What no other GPU of any machine has; its number here may be another's in another job."""
    kind: str
    """Such as `NVIDIA H200`."""


@functools.cache
def visible_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs of this machine, or job, that CUDA_VISIBLE_DEVICES leaves to this process."""
    if not shutil.which("nvidia-smi"):
        return ()
    command = ["nvidia-smi", "--query-gpu=uuid,name", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode:  # the command without its driver, as in images for containers
        return ()
    lines = [line.partition(",") for line in done.stdout.splitlines()]
    there = [Gpu(id.strip(), kind.strip()) for id, _, kind in lines if kind]
    return chosen_gpus(there, os.environ.get("CUDA_VISIBLE_DEVICES"))


def chosen_gpus(there: Sequence[Gpu], wanted: str | None) -> tuple[Gpu, ...]:
    """Return those of `there` that a value of CUDA_VISIBLE_DEVICES names; None names all.

    As CUDA reads it: numbers, or beginnings of ids; what follows one that is not there is left out.
    """
    if wanted is None:
        return tuple(there)
    found: list[Gpu] = []
    for name in map(str.strip, wanted.split(",")):
        if name.startswith("MIG-"):
            found.append(Gpu(name, "part of a GPU"))
            continue
        gpu = next(
            (
                gpu
                for number, gpu in enumerate(there)
                if name == str(number) or (name.startswith("GPU-") and gpu.id.startswith(name))
            ),
            None,
        )
        if gpu is None:
            break
        found.append(gpu)
    return tuple(found)


# What is installed now: a worker lives long, and packages may be upgraded under it


def versions() -> dict[str, str]:
    """Return what :func:`harness.records.environment.versions` does, found out when it has changed.

    So is, then, what else of this machine records say and `identity` is
    made of.
    """
    return _versions(_stamp())


@functools.lru_cache(maxsize=1)
def _versions(stamp: tuple[int, ...]) -> dict[str, str]:
    environment.surroundings.cache_clear()
    return environment.versions()


def _stamp() -> tuple[int, ...]:
    """Return what changes when a folder of packages does; looking into them takes longer."""
    found = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            found.append(os.stat(folder).st_mtime_ns)
    return tuple(found)


# One measurement at a time on each device, whoever asks for it

LOOK_S = 0.2


@contextlib.contextmanager
def alone(devices: Iterable[str], check: Callable[[], None]) -> Iterator[None]:
    """Hold devices of this machine against every other worker, whoever its client is.

    `check` is called while another one holds any of them; what it raises ends the waiting.
    """
    with contextlib.ExitStack() as held:
        for device in sorted(devices):  # in one order, so that no two wait for each other
            fd = _open(_folder() / f"jax-harness-{digest(device)}.lock")
            held.callback(os.close, fd)
            _lock(fd, check)
        yield


def _lock(fd: int, check: Callable[[], None]) -> None:
    waiting = threading.Event()
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            check()
            waiting.wait(LOOK_S)


def _folder() -> Path:
    """Return a folder that all workers of a machine share, though each job may have its TMPDIR.

    HARNESS_LOCKS names another one, to whoever wants to measure beside others all the same.
    """
    given = os.environ.get("HARNESS_LOCKS")
    if given:
        return Path(given)
    shared = Path("/tmp")
    return shared if shared.is_dir() else Path(tempfile.gettempdir())


def _open(path: Path) -> int:
    """Open a file that any user may have made; Linux lets nobody else open it for writing."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:  # made just now
        return os.open(path, os.O_RDONLY)
    os.fchmod(fd, 0o644)  # other users read it, whatever this one's umask is
    return fd


# What Dask's nanny puts into the environment of its worker, and a measurement must not have. Its
# defaults are meant for many tasks in one process. In one that measures they keep NumPy to one
# thread, make the C library give memory back all the time, and give every process the same seed of
# Python's hashes: times are others then, and processes more alike than they are.

NANNY_DEFAULTS = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "6640",
}
"""`distributed.nanny.pre-spawn-environ` of Dask's own configuration (distributed 2026.8), and the
seed that its nanny adds."""


def undo_nanny(worker: Any) -> None:
    """Take it out of the environment of this process, a Dask worker, from which others inherit.

    What the nanny itself was started with stays, and so does what Dask was configured to set.
    """
    if not worker.nanny:
        return
    try:
        given = psutil.Process(os.getppid()).environ()
    except (psutil.Error, OSError):
        return
    for name in added_by_nanny(os.environ, given):
        del os.environ[name]


def added_by_nanny(found: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return the variables of a worker that its nanny has added to what that was `given`."""
    return [
        name
        for name, value in NANNY_DEFAULTS.items()
        if found.get(name) == value and name not in given
    ]
