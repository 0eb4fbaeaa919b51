"""The targets that this machine may have: its CPU, its GPUs and its TPUs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from harness.errors import UsageError
from harness.targets.host import affinity, host
from harness.targets.target import Target

VIRTUAL_CPU_DEVICES = 2
"""CPU devices made for `sharded` and `pmap`, unless JAX_NUM_CPU_DEVICES says otherwise."""

_NVIDIA, _ROCM = Path("/dev/nvidiactl"), Path("/dev/kfd")
_GPU_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")


def virtual_cpu_devices() -> int:
    """Return how many CPU devices a process gets whose cases need several."""
    text = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    if not text:
        return VIRTUAL_CPU_DEVICES
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"JAX_NUM_CPU_DEVICES is {text!r}; expected a whole number of at least 1.")
    return int(text)


def _no_gpu() -> bool:
    return not (_NVIDIA.exists() or _ROCM.exists())


def _no_tpu() -> bool:
    return not (Path("/dev/accel0").exists() or any(Path("/dev/vfio").glob("[0-9]*")))


def _lacking_gpu() -> str | None:
    if not any(importlib.util.find_spec(plugin) for plugin in _GPU_PLUGINS):
        return "no GPU plugin of JAX is installed (extra 'gpu')"
    if _no_gpu():
        return f"no GPU on this machine (neither {_NVIDIA} nor {_ROCM})"
    return None


def _lacking_tpu() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'tpu')"
    if _no_tpu():
        return "no TPU on this machine (neither /dev/accel0 nor /dev/vfio/0)"
    return None


CPU = Target(
    "cpu",
    platforms="cpu",
    lacking=lambda: None,
    words=lambda: f"{host()['cpu']}, {affinity()} cores for this process",
    devices=1,
)

GPU = Target(
    "gpu",
    platforms="rocm,cpu" if _ROCM.exists() and not _NVIDIA.exists() else "cuda,cpu",
    lacking=_lacking_gpu,
    absent=_no_gpu,
)

TPU = Target("tpu", platforms="tpu,cpu", lacking=_lacking_tpu, absent=_no_tpu)
