"""The checks that run in a process of JAX: on the GPU, or building for one that is not there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harness import targets
from harness.declare.workload import PRECISIONS
from harness.program.facts import facts_of
from harness.sides import ceilings
from harness.sides.attribution import Attribution, attribute
from harness.sides.gpu_checks.cupy_checks import rates
from harness.sides.gpu_checks.programs import PROGRAMS, products, slope, softmax
from harness.sides.side import Unavailable


def made(arrays: Any) -> tuple[Any, ...]:
    """Return standard normal arrays on the device."""
    keys = jax.random.split(jax.random.key(20200229), len(arrays))
    return tuple(
        jax.random.normal(key, shape, "float32").astype(dtype)
        for key, (shape, dtype) in zip(keys, arrays, strict=True)
    )


def wait(result: Any) -> None:
    """Return when `result` is there."""
    jax.block_until_ready(result)


def launches() -> dict[str, Any]:
    """Compare the kernels that CUPTI saw with those that the compiled program names.

    `slope_s` says whether a call is as fast after CUPTI was there as it was before.
    """
    return {name: _launches(function, arrays) for name, (function, arrays) in PROGRAMS.items()}


def _launches(function: Callable[..., Any], arrays: Any) -> dict[str, Any]:
    arguments = made(arrays)
    lowered = jax.jit(functools.partial(function, jnp)).lower(*arguments)
    compiled = lowered.compile()
    call = functools.partial(compiled, *arguments)
    before = slope(call, wait)["slope_s"]
    seen = attribute(call)
    found: dict[str, Any] = {
        "program_launches": facts_of(None, lowered, compiled).launches,
        "slope_s": [before, slope(call, wait)["slope_s"]],
    }
    if isinstance(seen, Attribution):
        return found | {
            "cupti_kernels": seen.launches,
            "device_s": seen.device_ns / 1e9,
            "names": seen.kernels,
        }
    return found | {"cupti_kernels": seen}


def compile_only() -> dict[str, Any]:
    """Count the launches of the same programs, built for an H200 that is not there."""
    from harness.targets import topologies

    target = targets.find("gpu:h200")
    lacking = target.lacking()
    if lacking:
        raise Unavailable(lacking)
    try:
        here = topologies.describe(target.name, target.description).one
    except topologies.Unusable as error:
        raise Unavailable(str(error)) from error
    found = {}
    for name, (function, arrays) in PROGRAMS.items():
        specs = [jax.ShapeDtypeStruct(shape, dtype, sharding=here) for shape, dtype in arrays]
        lowered = jax.jit(functools.partial(function, jnp)).lower(*specs)
        facts = facts_of(None, lowered, lowered.compile())
        found[name] = {"program_launches": facts.launches}
    return found


def knee() -> list[dict[str, Any]]:
    """Return slope, dispatch and kernel time of one fusion, from 4 KiB to 1 GiB."""
    rows: list[dict[str, Any]] = []
    calls = []
    function = jax.jit(lambda x: x * x + 1)
    for power in range(10, 29, 2):
        arguments = made([((2**power,), "float32")])
        calls.append(functools.partial(function, *arguments))
        rows.append({"bytes": 4 * 2**power, **slope(calls[-1], wait)})
    for row, call in zip(rows, calls, strict=True):
        seen = attribute(call)
        row["device_s"] = seen.device_ns / 1e9 if isinstance(seen, Attribution) else None
    return rows


def command_buffers() -> dict[str, Any]:
    """Return the time of sixteen small products, with command buffers as XLA_FLAGS has them."""
    arguments = made([((256, 256), "float32")] * 2)
    function = jax.jit(functools.partial(products, jnp))
    return slope(lambda: function(*arguments), wait)


def precision() -> dict[str, Any]:
    """Return error and time of a product of 4096 x 4096 matrices in each precision."""
    x, y = made([((4096, 4096), "float32")] * 2)
    exact = np.asarray(x, "float64") @ np.asarray(y, "float64")
    found = {}
    for name, meaning in {**PRECISIONS, "default": None}.items():
        with jax.default_matmul_precision(meaning):
            multiply = jax.jit(jnp.matmul).lower(x, y).compile()
        error = np.linalg.norm(np.asarray(multiply(x, y), "float64") - exact)
        found[name] = {
            "error": float(error / np.linalg.norm(exact)),
            **slope(functools.partial(multiply, x, y), wait),
        }
    return found


def device() -> dict[str, Any]:
    """Return what the driver says of the device, and the ceilings that XLA reaches.

    XLA_FLAGS makes XLA write down what it takes the device for.
    """
    found: dict[str, Any] = {"name": jax.devices()[0].device_kind}
    for name, kind, meaning in (
        ("copy", "copy", None),
        ("triad", "triad", None),
        ("gemm", "gemm", PRECISIONS["ieee"]),
        ("gemm-tf32", "gemm", PRECISIONS["tf32"]),
        ("gemm-bfloat16", "gemm-bfloat16", None),
    ):
        specs = ceilings.Ceilings().inputs(kind, "device")
        arguments = made([(one.shape, one.dtype) for one in specs])
        with jax.default_matmul_precision(meaning):
            function = jax.jit(functools.partial(ceilings.compute, kind)).lower(*arguments)
        call = functools.partial(function.compile(), *arguments)
        found[name] = rates(kind, slope(call, wait)["slope_s"])
    return found


def softmax_cliff() -> list[dict[str, Any]]:
    """Return time and launches of a softmax over wider and wider rows of as many elements."""
    rows = []
    for width in (4096, 16384, 32768, 65536):
        arrays = [((2**26 // width, width), "float32")]
        rows.append({"width": width, **_launches(softmax, arrays)})
    return rows


def profiler() -> dict[str, Any]:
    """Tell whether a trace of `jax.profiler` holds the kernels that CuPy launched."""
    import tempfile

    from harness.sides.cupy_library import require_cupy

    cupy = require_cupy()
    kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", "harness_seen")
    x = cupy.zeros(1024, "float32")
    kernel(x)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            kernel(x)
            cupy.cuda.Device().synchronize()
        files = list(Path(folder).rglob("*.xplane.pb"))
        return {"seen": any(b"harness_seen" in file.read_bytes() for file in files)}


CHECKS: dict[str, Callable[[], Any]] = {
    "launches": launches,
    "knee": knee,
    "command-buffers": command_buffers,
    "precision": precision,
    "device": device,
    "softmax-cliff": softmax_cliff,
    "profiler": profiler,
}


def run(name: str) -> Any:
    """Run the check called `name`; raises Unavailable where there is no GPU."""
    if name == "compile-only":
        return compile_only()
    lacking = targets.find("gpu").lacking()
    if lacking:
        raise Unavailable(lacking)
    if jax.devices()[0].platform != "gpu":
        raise Unavailable(f"JAX chose the device {jax.devices()[0]}, which is no GPU")
    return CHECKS[name]()
