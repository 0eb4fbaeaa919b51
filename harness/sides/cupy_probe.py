"""Whether CuPy can compute here: asked from the cheapest question to the dearest."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from harness.sides.cupy_cache import check_cache_folder
from harness.sides.side import Unavailable

DRIVER_FILE = Path("/dev/nvidiactl")
"""There as soon as NVIDIA's driver is loaded."""

NOT_INSTALLED = "CuPy is not installed (extra 'gpu')"


def require_cupy() -> Any:
    """Return the module `cupy`, proven to compile and run a kernel.

    Raises:
        Unavailable: it cannot; the text is the one reason.
    """
    if not importlib.util.find_spec("cupy"):
        raise Unavailable(NOT_INSTALLED)
    if not DRIVER_FILE.exists():
        raise Unavailable(f"no CUDA driver ({DRIVER_FILE} does not exist)")
    check_cache_folder()
    try:
        import cupy
    except (ImportError, OSError) as error:
        raise Unavailable(f"CuPy cannot be imported: {error}") from error
    if not cupy.cuda.is_available():
        raise Unavailable("no CUDA device that CuPy can use (cupy.cuda.is_available() is False)")
    try:
        # A kernel of its own: one of CuPy's would be compiled already when a baseline wants it.
        kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", "harness_probe")
        proof = kernel(cupy.asarray(np.ones(1, "float32"))).get().tolist()
    except RuntimeError as error:
        raise Unavailable(f"CuPy could not run one small kernel: {explain(error)}") from error
    if proof != [2.0]:
        raise Unavailable(f"CuPy computed 1 + 1 = {proof}; the device or driver is broken")
    return cupy


def lacking() -> str | None:
    """Return why CuPy cannot compute here, without importing it; None if it seems that it can."""
    if not importlib.util.find_spec("cupy"):
        return NOT_INSTALLED
    if not DRIVER_FILE.exists():
        return f"no CUDA driver ({DRIVER_FILE} does not exist)"
    return None


_BY_STATUS = {
    2: "the device's memory is exhausted",
    35: "no CUDA driver, or one that is too old for this CuPy",
    46: "the device is busy, or in a mode that lets one process use it",
    100: "no CUDA device",
    209: "this CuPy has no code for this device",
}
"""CUDARuntimeError.status to a reason; see cudaError_t in NVIDIA's documentation."""


def explain(error: BaseException) -> str:
    """Return in one sentence what an exception of CuPy means."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    if name == "OutOfMemoryError":
        return f"the device's memory is exhausted: {text}"
    if name == "DynamicLibNotFoundError":
        return f"a library of CUDA is missing (cupy-cuda13x[ctk] brings them): {text}"
    reason = _BY_STATUS.get(getattr(error, "status", -1))
    return f"{reason} ({text})" if reason else f"{name}: {text}"
