"""The checks: functions of one library, or of none, that return what they found as plain data."""

import functools
import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from harness import targets
from harness.baselines import ceilings
from harness.baselines.cupy_eager import count_compiles, explain, lacking, require_cupy
from harness.baselines.side import Unavailable
from harness.baselines.timing import attribute
from harness.program.facts import facts_of
from tools.gpu.libraries import Cupy, Xla
from tools.gpu.programs import PROGRAMS, gelu, product, products, softmax, square


def launches(library, programs=PROGRAMS):
    """Compare the kernels that CUPTI saw with those that the program, or its graph, has.

    Profilers are attached last: after the graphs, whose capture they might disturb. `slope_s` says
    whether a call is as fast after CUPTI was there as it was before.
    """
    seen, calls = {}, {}
    for function, arrays in programs.items():
        arguments, name = library.made(arrays), function.__name__
        calls[name] = library.call(function, arguments)
        seen[name] = library.counted(function, arguments)
        seen[name]["slope_s"] = [library.time(calls[name])["slope_s"]]
    for name, call in calls.items():
        seen[name] |= kernels(call)
        seen[name]["slope_s"].append(library.time(call)["slope_s"])
    return seen


def kernels(call):
    """Return what CUPTI saw in a call."""
    attribution = attribute(call)
    if isinstance(attribution, str):
        return {"cupti_kernels": attribution}
    return {
        "cupti_kernels": attribution.launches,
        "device_s": attribution.device_ns / 1e9,
        "names": attribution.kernels,
    }


def compile_only():
    """Count the launches of the same programs, built for an H200 that is not there."""
    import jax

    from harness.targets import topologies

    target = targets.find("gpu:h200")
    if target.lacking():
        raise Unavailable(target.lacking())
    try:
        here = topologies.describe(target.name, target.description).one
    except topologies.Unusable as error:
        raise Unavailable(str(error)) from error
    counts = {}
    for function, arrays in PROGRAMS.items():
        specs = [jax.ShapeDtypeStruct(shape, dtype, sharding=here) for shape, dtype in arrays]
        lowered = jax.jit(functools.partial(function, jax.numpy)).lower(*specs)
        facts = facts_of(None, lowered, lowered.compile())
        counts[function.__name__] = {"program_launches": facts.launches}
    return counts


def fuse_fallback(library):
    """Compare `cupy.fuse` with the eager baseline, where it stays on its old way and where not."""
    ratios = {}
    for function in (gelu, softmax):
        arguments = library.made(PROGRAMS[function])
        eager_s = library.time(library.call(function, arguments))["slope_s"]
        fused, fell_back = library.fused(function, arguments)
        fused_s = library.time(fused)["slope_s"]
        ratios[function.__name__] = {
            "fell_back": fell_back(),
            "eager_s": eager_s,
            "fused_s": fused_s,
            "fused_to_eager": fused_s / eager_s,
        }
    return ratios


def knee(library):
    """Return slope, dispatch and kernel time of one small program, from 4 KiB to 1 GiB."""
    rows, calls = [], []
    for power in range(10, 29, 2):
        calls.append(library.call(square, library.made([((2**power,), "float32")])))
        rows.append({"bytes": 4 * 2**power, **library.time(calls[-1])})
    return [row | kernels(call) for row, call in zip(rows, calls, strict=True)]


def precision(library):
    """Return error and time of a product of 4096 x 4096 matrices in each precision."""
    x, y = library.made([((4096, 4096), "float32")] * 2)
    exact = _wide(x) @ _wide(y)
    rows = {}
    for name in library.precisions:
        call = library.call(product, (x, y), name)
        error = float(np.linalg.norm(_wide(call()) - exact) / np.linalg.norm(exact))
        rows[name] = {"error": error, **library.time(call)}
    return rows


def _wide(array):
    """Return an array of JAX or CuPy as NumPy's of float64."""
    return np.asarray(array.get() if hasattr(array, "get") else array, "float64")


def device(library):
    """Return what is said of the device, and the ceilings that the library reaches on it.

    XLA_FLAGS makes XLA write down what it takes the device for.
    """
    rows = library.device()
    ieee = [(kind, "ieee") for kind in ceilings.Ceilings.sweep["kind"]]
    for kind, how in [*ieee, ("gemm", "tf32")]:
        specs = ceilings.Ceilings().inputs(kind, "device")
        try:
            arguments = library.made([(one.shape, one.dtype) for one in specs])
            compute = functools.partial(_ceiling, kind)
            seconds = library.time(library.call(compute, arguments, how))["slope_s"]
        except (ImportError, TypeError, ValueError, RuntimeError, MemoryError) as error:
            rows[f"{kind} {how}"] = explain(error)  # bfloat16 is young in CuPy
            continue
        size = math.prod(specs[0].shape)  # as that of the result
        flops = {"copy": 0, "triad": 2 * size}
        rows[f"{kind} {how}"] = {
            "seconds": seconds,
            "bytes_per_s": (1 + len(specs)) * size * (2 if "bfloat" in kind else 4) / seconds,
            "flops_per_s": flops.get(kind, 2 * size * specs[0].shape[0]) / seconds,
        }
    return rows


def _ceiling(kind, xp, *arrays):
    return ceilings.compute(kind, *arrays)


def command_buffers(library):
    """Return the time of sixteen small products, with command buffers as XLA_FLAGS has them."""
    return library.time(library.call(products, library.made([((256, 256), "float32")] * 2)))


def softmax_cliff(library):
    """Return time and launches of a softmax over wider and wider rows of as many elements."""
    return [
        {"width": width, **launches(library, {softmax: [((2**26 // width, width), "float32")]})}
        for width in (4096, 16384, 32768, 65536)
    ]


def compile_times():
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


def profiler(library):
    """Tell whether a trace of `jax.profiler` holds the kernels that CuPy launched."""
    cupy = require_cupy()
    kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", "harness_seen")
    x = cupy.zeros(1024, "float32")
    kernel(x)
    with tempfile.TemporaryDirectory() as folder:
        with library.jax.profiler.trace(folder):
            kernel(x)
            cupy.cuda.Device().synchronize()
        files = list(Path(folder).rglob("*.xplane.pb"))
        return {"seen": any(b"harness_seen" in file.read_bytes() for file in files)}


_CACHE = {"CUPY_CACHE_DIR": "{scratch}/compile-times"}
_IN_MEMORY = {"CUPY_CACHE_IN_MEMORY": "1"}
_PRECOMPILED = {**_IN_MEMORY, "CUPY_NVRTC_USE_PCH": "1"}
_NO_BUFFERS = {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="}

CHECKS = {
    "device and ceilings, XLA": (Xla, device, {"XLA_FLAGS": "--xla_dump_to={scratch}/dump"}),
    "device and ceilings, CuPy": (Cupy, device, {}),
    "launches, CuPy": (Cupy, launches, {}),
    "launches, XLA": (Xla, launches, {}),
    "launches, compile-only": (None, compile_only, {}),
    "fuse fallback": (Cupy, fuse_fallback, {}),
    "precision, XLA": (Xla, precision, {}),
    "precision, CuPy": (Cupy, precision, {}),
    "command buffers on": (Xla, command_buffers, {}),
    "command buffers off": (Xla, command_buffers, _NO_BUFFERS),
    "compile times, cold": (None, compile_times, _CACHE),
    "compile times, warm": (None, compile_times, _CACHE),
    "compile times, in memory": (None, compile_times, _IN_MEMORY),
    "compile times, in memory, precompiled headers": (None, compile_times, _PRECOMPILED),
    "softmax cliff": (Xla, softmax_cliff, {}),
    "knee, XLA": (Xla, knee, {}),
    "knee, CuPy": (Cupy, knee, {}),
    "CuPy in jax.profiler": (Xla, profiler, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
}
"""By name, most wanted first: the library that computes, the check, and variables of its process,
in which `{scratch}` stands for a folder of the whole run."""


def run(name):
    """Run a check in this process; return its `status` (`ok`, `n/a`, `failed`) and what it found.

    Libraries of a device raise anything; the report must say what.
    """
    library, check, _ = CHECKS[name]
    try:
        return {"status": "ok", "value": check(library()) if library else check()}
    except Unavailable as error:
        return {"status": "n/a", "reason": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return {"status": "failed", "reason": f"{type(error).__name__}: {text[:600]}"}
