"""npbench: each kernel with a file for JAX, described by npbench's own `bench_info`."""

import functools
import importlib
import json
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from tools.corpus.programs.program import Program, checkout


def arguments(info: dict[str, Any], size: str) -> tuple[Any, ...]:
    """Return a kernel's arguments, as `Benchmark.get_data` and `JaxFramework` make them."""
    values = dict(info["parameters"][size])
    if info.get("init"):
        own = importlib.import_module(f"{package(info)}.{info['module_name']}")
        given = [values[name] for name in info["init"]["input_args"]]
        made = getattr(own, info["init"]["func_name"])(*given)
        names = info["init"]["output_args"]
        values.update(zip(names, made, strict=True) if len(names) > 1 else [(names[0], made)])
    arrays = info["array_args"]
    return tuple(
        jnp.array(values[name]) if name in arrays else values[name] for name in info["input_args"]
    )


def package(info: dict[str, Any]) -> str:
    """Return the name of the package that a kernel is in."""
    return f"npbench.benchmarks.{info['relative_path'].replace('/', '.')}"


def programs() -> Iterator[tuple[str, Program]]:
    """Yield every kernel that has a file for JAX, by the name of its module."""
    folder = checkout("npbench", ".")
    for file in sorted(folder.glob("bench_info/*.json")):
        info = json.loads(file.read_text())["benchmark"]
        name = info["module_name"]
        if not (folder / f"npbench/benchmarks/{info['relative_path']}/{name}_jax.py").exists():
            continue
        function = getattr(
            importlib.import_module(f"{package(info)}.{name}_jax"), info["func_name"]
        )
        if not hasattr(function, "lower"):  # called as it is; what is no array steers its loops
            fixed = [name for name in info["input_args"] if name not in info["array_args"]]
            function = jax.jit(function, static_argnames=fixed)
        yield name, Program(function, functools.partial(arguments, info), ("S", "M"), x64=True)


PROGRAMS = dict(programs())
