"""The NVIDIA GPUs that this process may use, found out without waking JAX or CUDA."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

ANSWER_S = 30.0
"""How long the driver may take to answer."""


class Gpu(NamedTuple):
    """A GPU, or a part of one."""

    id: str
    """What no other GPU of any machine has; its number here may be another's in another job."""
    kind: str
    """Such as `NVIDIA H200`."""


@functools.cache
def visible() -> tuple[Gpu, ...]:
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
    return chosen(there, os.environ.get("CUDA_VISIBLE_DEVICES"))


def chosen(there: Sequence[Gpu], wanted: str | None) -> tuple[Gpu, ...]:
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
