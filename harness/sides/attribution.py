"""Time inside kernels, as the device's own activity records tell it; never the headline.

CUPTI's records are of a whole process, so the same instrument serves XLA and CuPy. It is taken in a
pass of its own, after all timing: under a profiler XLA launches kernel by kernel what it would have
put into a CUDA graph. The instrument is the one of JAX's Mosaic GPU, which is private.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.watch import jax_names


@dataclass(frozen=True)
class Attribution:
    """What one call launched. Copies and fills of memory are not kernels, and not seen."""

    launches: int
    device_ns: float
    """The sum over its kernels, so kernels that ran side by side count twice."""
    kernels: tuple[str, ...]
    """Their names, in order."""


def attribute(call: Callable[[], Any], iterations: int = 3) -> Attribution | str:
    """Return what a call of `call` launched on the device, or why that cannot be told.

    `call` has been called before: nothing must be compiled in it. The time is the least over
    `iterations` calls.
    """
    extension = _extension()
    if isinstance(extension, str):
        return extension
    try:
        extension._cupti_init()
        try:
            results = [call() for _ in range(iterations)]
            extension._sync_all_devices()
            del results
        finally:
            rows = extension._cupti_get_timings(True)
    except RuntimeError as error:
        return f"CUPTI or the call failed, or another profiler uses CUPTI: {error}"
    return summarise(rows, iterations)


def summarise(rows: list[tuple[str, float]], iterations: int) -> Attribution | str:
    """Return one call's share of CUPTI's rows, which are (name, milliseconds) in order."""
    if not rows:
        return "CUPTI saw no kernel: nothing was launched, or only copies"
    if len(rows) % iterations:
        return f"{iterations} equal calls launched {len(rows)} kernels, which no number divides"
    count = len(rows) // iterations
    calls = [rows[at : at + count] for at in range(0, len(rows), count)]
    names = tuple(name for name, _ in calls[0])
    if any(tuple(name for name, _ in one) != names for one in calls):
        return "equal calls launched different kernels"
    best = min(math.fsum(ms for _, ms in one) for one in calls)
    return Attribution(count, best * 1e6, names)


def _extension() -> Any:
    """Return the module that speaks to CUPTI, or the reason why there is none.

    In a process of CuPy, JAX must be kept from the device: its client would take three quarters of
    the memory.
    """
    if "jax" not in sys.modules and os.environ.get("JAX_PLATFORMS") != "cpu":
        return "JAX_PLATFORMS must be 'cpu' in a process of CuPy, so that JAX leaves the device be"
    try:
        extension = jax_names.cupti()
        needed = ("_cupti_init", "_cupti_get_timings", "_sync_all_devices")
        lacking = [name for name in needed if not hasattr(extension, name)]
    except (ImportError, AttributeError) as error:
        return f"this JAX brings no CUPTI instrument (jax-cuda13-plugin): {error}"
    return f"this JAX's CUPTI instrument lacks {', '.join(lacking)}" if lacking else extension
