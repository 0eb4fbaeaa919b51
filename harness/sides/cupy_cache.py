"""CuPy's kernel cache: where it lies, in which environment, and what it did.

CuPy reads its variables, and makes the folder of its kernel cache, when it is imported; so the
parent of the process that measures sets them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harness.sides.side import Unavailable

_TF32 = {"": "0", "ieee": "0", "tf32": "1", "bf16": "0"}


def cupy_environment(cache_folder: str | Path, precision: str = "") -> dict[str, str]:
    """Return the variables of a process that computes with CuPy.

    `cache_folder` holds its compiled kernels: an empty folder is a cold cache, one that another
    process filled a warm one. The driver's own cache is off, so that a cold cache is cold.

    `precision` is one of `PRECISIONS` for a process all of whose products are in it, and empty for
    one that computes several: the side then sets it per case. `ieee` forbids the tensor cores to
    every library of the process, so nothing in it can be `tf32`.
    """
    if precision not in _TF32:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(_TF32)!r}")
    forbidden = {"NVIDIA_TF32_OVERRIDE": "0"} if precision == "ieee" else {}
    return {
        "CUPY_CACHE_DIR": str(cache_folder),
        "CUPY_CACHE_IN_MEMORY": "0",
        "CUPY_ACCELERATORS": "cub",
        "CUPY_TF32": _TF32[precision],
        "CUDA_CACHE_DISABLE": "1",
        **forbidden,
    }


def check_cache_folder() -> None:
    """Check that CuPy will be able to write its kernel cache, which it does not say clearly itself.

    Raises:
        Unavailable: the folder cannot be made or written.
    """
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"CuPy's kernel cache cannot be made at {folder} ({error.strerror}); set CUPY_CACHE_DIR"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(
            f"CuPy's kernel cache at {folder} cannot be written; set CUPY_CACHE_DIR to a folder "
            "that can"
        )


def count_compiles() -> dict[str, int] | None:
    """Make CuPy count what its kernel cache does, from now on.

    Returns `hits`, `misses` and `bytes` (of kernels read and written), which go on counting, or
    None where this CuPy has no such hook. A miss is a compilation by NVRTC. The hook is private
    and there since CuPy 14.1.
    """
    try:
        from cupy.cuda import compiler

        before: Any = compiler._kernel_cache_backend
        base: Any = compiler._KernelCacheBackend
        install = compiler._set_kernel_cache_backend
    except (ImportError, AttributeError):
        return None
    counts = {"hits": 0, "misses": 0, "bytes": 0}

    class Counting(base):  # type: ignore[misc, unused-ignore]
        def load(self, name: str) -> bytes | None:
            payload: bytes | None = before.load(name)
            counts["misses" if payload is None else "hits"] += 1
            counts["bytes"] += len(payload or b"")
            return payload

        def save(self, name: str, cubin: bytes, source: str) -> None:
            counts["bytes"] += len(cubin)
            before.save(name, cubin, source)

    install(Counting())
    return counts
