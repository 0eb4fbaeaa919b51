"""JAX's own benchmarks: the function that each one jits, and the arguments that it calls it with.

A benchmark makes both inside of itself, so it is begun, and left at the first call of what it jits.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import jax
import numpy as np

from tests.corpus.programs.program import Program, checkout

SQUARE = {"S": {"b": 1, "n": 100}}
OBLONG = {"S": {"b": 1, "m": 100, "n": 500}}
LINALG = {
    **dict.fromkeys(("svd", "qr", "lu"), OBLONG),
    **dict.fromkeys(("cholesky", "eigh", "hessenberg", "schur", "solve_triangular"), SQUARE),
    "tridiagonal_solve": SQUARE,
}
DOT = {"S": {"m": 1024, "k": 1024, "n": 1024}}


class Called(BaseException):
    """Leaves a benchmark at the first call of what it has jitted."""


def captured(benchmark: Any, *given: Any, **named: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what a benchmark jits, and the arguments of its first call."""
    jit, found = jax.jit, []

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


def linalg(name: str, size: str) -> tuple[Any, tuple[Any, ...]]:
    """Return one of linalg_benchmark's functions and its arguments."""
    np.random.seed(0)
    values = LINALG[name][size].values()
    benchmark = getattr(importlib.import_module("linalg_benchmark"), f"{name}_benchmark")
    return captured(benchmark, *values, np.float32, False)


def dot(size: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the matrix product of math_benchmark and its arguments."""
    benchmark = importlib.import_module("math_benchmark").jax_binary_op
    mkn = list(DOT[size].values())
    np.random.seed(0)
    return captured(benchmark, None, {"mkn": mkn, "dtype": "float32", "op": jax.numpy.dot})


checkout("jax-benchmarks", "benchmarks")
sys.modules.setdefault("google_benchmark", _Anything("google_benchmark"))
PROGRAMS = {
    name: Program(linalg(name, "S")[0], lambda size, name=name: linalg(name, size)[1], sizes)
    for name, sizes in LINALG.items()
} | {"dot": Program(dot("S")[0], lambda size: dot(size)[1], DOT)}
