"""What a worker knows of its machine: class, GPUs, packages, devices in use, what Dask has set."""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import psutil

from harness.engine.lock import alone as alone
from harness.engine.lock import host as host
from harness.records import environment
from harness.targets import host as targets_host


@functools.cache
def visible_gpus() -> dict[str, str]:
    """Return the NVIDIA GPUs that this process may use: the id that no other GPU has, to its kind.

    Found without waking JAX or CUDA; the number of a GPU may be another's in another job. All of
    them where the driver does not know what CUDA_VISIBLE_DEVICES names, such as a part of a GPU.
    """
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace(" ", "")
    if wanted in ("", "-1"):
        return {}
    command = ["nvidia-smi", "--query-gpu=uuid,name", "--format=csv,noheader"]
    for chosen in ([f"--id={wanted}"] if wanted != "all" else [], []):
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # there may be no driver
            done = subprocess.run(
                [*command, *chosen], capture_output=True, text=True, timeout=30, check=True
            )
            lines = [line.partition(",") for line in done.stdout.splitlines()]
            return {id.strip(): kind.strip() for id, _, kind in lines if kind}
    return {}


def kind() -> str:
    """Return the name of this machine's class: HARNESS_CLASS, else its hardware."""
    found, given = targets_host.host(), os.environ.get("HARNESS_CLASS")
    if given:
        return given
    gib = found["ram_bytes"] / 2**30
    step = 2.0 ** max(math.floor(math.log2(gib)) - 3, 0)  # a system keeps some of it to itself
    cpu = re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b", " ", found["cpu"], flags=re.IGNORECASE)
    words = [cpu, f"{found['cores']} cores {math.ceil(gib / step) * step:g} GiB"]
    text = " ".join([*words, *sorted(set(visible_gpus().values()))])
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()


def versions() -> dict[str, str]:
    """Return what :func:`harness.records.environment.versions` does, also after an upgrade.

    A worker lives long, and packages may be upgraded under it: where the folders of packages have
    changed, all that records say of this machine is found out anew.
    """
    stamp = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            stamp.append(os.stat(folder).st_mtime_ns)
    return _versions(tuple(stamp))


@functools.lru_cache(maxsize=1)
def _versions(stamp: tuple[int, ...]) -> dict[str, str]:
    environment.surroundings.cache_clear()
    return environment.versions()


@functools.cache
def undo_nanny() -> None:
    """Take what Dask's nanny sets by default out of the environment of this process, its worker.

    It is meant for many tasks in one process. In processes that measure it would keep NumPy to one
    thread, make the C library give memory back all the time, and give all the same seed of Python's
    hashes. What the nanny was started with stays, and so does what Dask was configured to set.
    """
    if "from Nanny" not in multiprocessing.current_process().name:
        return
    with contextlib.suppress(psutil.Error, OSError):
        given = psutil.Process(os.getppid()).environ()
        for name in added_by_nanny(os.environ, given):
            del os.environ[name]


def added_by_nanny(found: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return the variables of a worker that its nanny has added to what that was `given`."""
    dask = sys.modules["distributed.config"].defaults["distributed"]
    added = {
        **dask["nanny"]["pre-spawn-environ"],
        "PYTHONHASHSEED": 6640,  # the nanny's own (distributed 2026.8)
    }
    return [n for n, value in added.items() if found.get(n) == str(value) and n not in given]
