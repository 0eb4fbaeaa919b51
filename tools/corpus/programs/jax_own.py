"""JAX's own benchmarks: the function that each one jits, and the arguments that it calls it with.

A benchmark makes both inside of itself, so it is begun, and left at the first call of what it jits.
"""

import functools
import importlib
import sys
import types
from typing import Any

import jax
import numpy as np

from tools.corpus.programs.program import Program, checkout

SQUARE, OBLONG = (1, 100), (1, 100, 500)
"""A batch of one matrix, of so many rows and columns."""
LINALG = {
    **dict.fromkeys(("svd", "qr", "lu"), OBLONG),
    **dict.fromkeys(("cholesky", "eigh", "hessenberg", "schur", "solve_triangular"), SQUARE),
    "tridiagonal_solve": SQUARE,
}


class Called(BaseException):
    """Leaves a benchmark at the first call of what it has jitted."""


def captured(benchmark: Any, *given: Any, **named: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what a benchmark jits, and the arguments of its first call."""
    jit, found = jax.jit, []
    np.random.seed(0)

    def jit_and_leave(*args: Any, **options: Any) -> Any:
        made = jit(*args, **options)

        def call(*arguments: Any) -> None:
            found.append((made, arguments))
            raise Called

        return call

    jax.jit = jit_and_leave
    try:
        benchmark(*given, **named)
    except Called:
        return found[0]
    finally:
        jax.jit = jit
    raise RuntimeError(f"{benchmark} ended without a call of what it jits")


class _Anything(types.ModuleType):
    """Stands for google_benchmark, whose decorators are not needed to call a function."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else self


def linalg(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return one of linalg_benchmark's functions and its arguments."""
    benchmark = getattr(importlib.import_module("linalg_benchmark"), f"{name}_benchmark")
    return captured(benchmark, *LINALG[name], np.float32, False)


def dot() -> tuple[Any, tuple[Any, ...]]:
    """Return the matrix product of math_benchmark and its arguments."""
    benchmark = importlib.import_module("math_benchmark").jax_binary_op
    asked = {"mkn": [1024, 1024, 1024], "dtype": "float32", "op": jax.numpy.dot}
    return captured(benchmark, None, asked)


checkout("jax-benchmarks", "benchmarks")
sys.modules.setdefault("google_benchmark", _Anything("google_benchmark"))
MADE = {**{name: functools.partial(linalg, name) for name in LINALG}, "dot": dot}
PROGRAMS = {
    name: Program(make()[0], lambda size, make=make: make()[1]) for name, make in MADE.items()
}
