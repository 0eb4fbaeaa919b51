"""The checks that run in a process of CuPy; JAX, where it is imported, keeps to the CPU."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Any

from harness.declare.workload import PRECISIONS, Case, Workload
from harness.sides import ceilings
from harness.sides.attribution import Attribution, attribute
from harness.sides.counting import tally
from harness.sides.cupy_fused import fell_back, fuse
from harness.sides.cupy_graph import CupyGraph
from harness.sides.cupy_library import count_compiles, explain, lacking
from harness.sides.gpu_checks.programs import PROGRAMS, gelu, slope, softmax
from harness.sides.side import Unavailable


def made(cupy: Any, arrays: Any) -> tuple[Any, ...]:
    """Return standard normal arrays on the device."""
    return tuple(
        cupy.random.standard_normal(shape, dtype="float32").astype(dtype) for shape, dtype in arrays
    )


def _workload(name: str) -> type[Workload]:
    function = PROGRAMS[name][0]
    hooks = {"baseline": staticmethod(function), "function": staticmethod(function)}
    return type(name, (Workload,), {**hooks, "inputs": lambda self: ()})


def launches(side: CupyGraph) -> dict[str, Any]:
    """Compare the kernels that CUPTI saw with those of the CUDA graph and the counted operations.

    Profilers are attached last: after the graphs, whose capture they might disturb. `slope_s` says
    whether a call is as fast after CUPTI was there as it was before.
    """
    found: dict[str, Any] = {}
    calls = {}
    for name, (function, arrays) in PROGRAMS.items():
        arguments = made(side.cupy, arrays)
        eager = side.plain(_workload(name), Case())
        calls[name] = _call(eager, arguments)
        found[name] = {"operations": tally(function, side.fetch(arguments)).operations}
        try:
            side.build(_workload(name), Case(), arguments)(*arguments)
            found[name]["graph_kernels"] = side.last.kernels if side.last else None
        except Unavailable as error:
            found[name]["graph_kernels"] = str(error)
        calls[name]()
        side.wait(None)
    for name, call in calls.items():
        found[name]["slope_s"] = [slope(call, side.wait)["slope_s"]]
    for name, call in calls.items():
        seen = attribute(call)
        found[name]["slope_s"].append(slope(call, side.wait)["slope_s"])
        found[name] |= (
            {"cupti_kernels": seen.launches, "device_s": seen.device_ns / 1e9}
            if isinstance(seen, Attribution)
            else {"cupti_kernels": seen}
        )
    return found


def fuse_fallback(side: CupyGraph) -> dict[str, Any]:
    """Compare `cupy.fuse` with the eager baseline, where it stays on its old way and where not."""
    found = {}
    for name, function in (("gelu", gelu), ("softmax", softmax)):
        arguments = made(side.cupy, PROGRAMS[name][1])
        eager = side.plain(_workload(name), Case())
        fused = fuse(side.cupy.fuse, eager, arguments)
        eager_s = slope(_call(eager, arguments), side.wait)["slope_s"]
        fused_s = slope(_call(fused, arguments), side.wait)["slope_s"]
        found[function.__name__] = {
            "fell_back": fell_back(fused),
            "eager_s": eager_s,
            "fused_s": fused_s,
            "fused_to_eager": fused_s / eager_s,
        }
    return found


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: function(*arguments)


def knee(side: CupyGraph) -> list[dict[str, Any]]:
    """Return slope, dispatch and kernel time of two operations, from 4 KiB to 1 GiB."""
    rows: list[dict[str, Any]] = []
    calls = []
    for power in range(10, 29, 2):
        (x,) = made(side.cupy, [((2**power,), "float32")])
        calls.append(lambda x=x: x * x + 1)
        rows.append({"bytes": 4 * 2**power, **slope(calls[-1], side.wait)})
    for row, call in zip(rows, calls, strict=True):
        seen = attribute(call)
        row["device_s"] = seen.device_ns / 1e9 if isinstance(seen, Attribution) else None
    return rows


def precision(side: CupyGraph) -> dict[str, Any]:
    """Return error and time of a product of 4096 x 4096 matrices in each precision."""
    x, y = made(side.cupy, [((4096, 4096), "float32")] * 2)
    exact = x.astype("float64") @ y.astype("float64")
    found = {}
    for name in PRECISIONS:
        multiply = side._in_precision(lambda x, y: x @ y, Case(precision=name))
        error = side.cupy.linalg.norm(multiply(x, y) - exact) / side.cupy.linalg.norm(exact)
        found[name] = {
            "error": float(error),
            **slope(_call(multiply, (x, y)), side.wait),
        }
    return found


def device(side: CupyGraph) -> dict[str, Any]:
    """Return what the driver says of the device, and the ceilings that CuPy reaches."""
    runtime = side.cupy.cuda.runtime
    properties = runtime.getDeviceProperties(int(runtime.getDevice()))
    name = properties["name"]
    found: dict[str, Any] = {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "l2_bytes": properties["l2CacheSize"],
        "memory_bytes": properties["totalGlobalMem"],
        "multiprocessors": properties["multiProcessorCount"],
        "versions": side.versions(),
    }
    for kind in ceilings.Ceilings.sweep["kind"]:
        try:
            found[kind] = _ceiling(side, kind)
        except (ImportError, TypeError, ValueError, RuntimeError, MemoryError) as error:
            found[kind] = explain(error)  # bfloat16 is young in CuPy
    return found


def _ceiling(side: CupyGraph, kind: str) -> dict[str, float]:
    importlib.import_module("ml_dtypes")  # makes "bfloat16" a name
    specs = ceilings.Ceilings().inputs(kind, "device")
    arguments = made(side.cupy, [(one.shape, one.dtype) for one in specs])
    return rates(kind, slope(lambda: ceilings.compute(kind, *arguments), side.wait)["slope_s"])


def rates(kind: str, seconds: float) -> dict[str, float]:
    """Return seconds per call of a ceiling, with what it says per second."""
    return {
        "seconds": seconds,
        "bytes_per_s": ceilings.moved_bytes(kind, "device") / seconds,
        "flops_per_s": ceilings.flops(kind, "device") / seconds,
    }


def compile_times() -> dict[str, Any]:
    """Return what a first call costs in this process's state of the kernel cache.

    The folder and whether it is used are in the environment; see `CUPY_CACHE_DIR`.
    """
    reason = lacking()
    if reason:
        raise Unavailable(reason)
    clock = time.perf_counter
    begin = clock()
    import cupy

    imported = clock()
    cupy.cuda.runtime.free(0)  # wakes the context, which is the driver's cost and not CuPy's
    woken = clock()
    counts = count_compiles()
    x = cupy.zeros((256, 256), "float32")
    cupy.cuda.Device().synchronize()
    spent = []
    for _ in range(2):
        start = clock()
        softmax(cupy, gelu(cupy, x))
        cupy.cuda.Device().synchronize()
        spent.append(clock() - start)
    return {
        "import_s": imported - begin,
        "context_s": woken - imported,
        "first_call_s": spent[0],
        "second_call_s": spent[1],
        "in_memory": os.environ.get("CUPY_CACHE_IN_MEMORY"),
        "compiles": counts,
    }


CHECKS: dict[str, Callable[[CupyGraph], Any]] = {
    "launches": launches,
    "fuse-fallback": fuse_fallback,
    "knee": knee,
    "precision": precision,
    "device": device,
}


def run(name: str) -> Any:
    """Run the check called `name`; raises Unavailable where CuPy cannot compute."""
    return compile_times() if name == "compile-times" else CHECKS[name](CupyGraph())
