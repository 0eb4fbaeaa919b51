"""The GPUs of this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from harness.targets.target import Target

_NVIDIA, _ROCM = Path("/dev/nvidiactl"), Path("/dev/kfd")
_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")


def _lacking() -> str | None:
    if not any(importlib.util.find_spec(plugin) for plugin in _PLUGINS):
        return "no GPU plugin of JAX is installed (extra 'gpu')"
    if not (_NVIDIA.exists() or _ROCM.exists()):
        return f"no GPU on this machine (neither {_NVIDIA} nor {_ROCM})"
    return None


TARGET = Target(
    "gpu",
    platforms="rocm,cpu" if _ROCM.exists() and not _NVIDIA.exists() else "cuda,cpu",
    lacking=_lacking,
)
