"""Targets that run what is built: the CPU, and the accelerators of this machine."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from harness.errors import UsageError
from harness.targets.target import Target

VIRTUAL_CPU_DEVICES = 2
"""CPU devices made for `sharded` and `pmap`, unless JAX_NUM_CPU_DEVICES says otherwise."""


def virtual_cpu_devices() -> int:
    """Return how many CPU devices a process gets whose cases need several."""
    text = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    if not text:
        return VIRTUAL_CPU_DEVICES
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"JAX_NUM_CPU_DEVICES is {text!r}; expected a whole number of at least 1.")
    return int(text)


def _no_reason() -> str | None:
    return None


def _gpu_lacking() -> str | None:
    plugins = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")
    if not any(importlib.util.find_spec(plugin) for plugin in plugins):
        return "no GPU plugin of JAX is installed (extra 'gpu')"
    if not (Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()):
        return "no GPU on this machine (neither /dev/nvidiactl nor /dev/kfd)"
    return None


def _gpu_platforms() -> str:
    rocm = Path("/dev/kfd").exists() and not Path("/dev/nvidiactl").exists()
    return "rocm,cpu" if rocm else "cuda,cpu"


def _tpu_lacking() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'tpu')"
    if not (Path("/dev/accel0").exists() or any(Path("/dev/vfio").glob("[0-9]*"))):
        return "no TPU on this machine (neither /dev/accel0 nor /dev/vfio/0)"
    return None


REAL = (
    Target("cpu", "cpu", _no_reason),
    Target("gpu", _gpu_platforms(), _gpu_lacking),
    Target("tpu", "tpu,cpu", _tpu_lacking),
)
