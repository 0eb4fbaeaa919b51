"""What the machine can do at best: bytes and floating-point operations per second.

Measured in the same run, by the same clock, as what is held against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.workload.workload import Spec, Workload, spec

ELEMENTS = {"host": 2**24, "device": 2**27}
"""Of each array of `copy` and `triad`: 64 MiB for a CPU, 512 MiB for an accelerator, far more than
its cache holds."""

ORDER = {"host": 1024, "device": 8192}
"""Rows and columns of the matrices of `gemm`."""

_ARRAYS = {"copy": 2, "triad": 3}
_GEMM_DTYPES = {"gemm": "float32", "gemm-bfloat16": "bfloat16"}


class Ceilings(Workload):
    """Copy, triad and matrix product: what the machine can do at best.

    `copy` is `-x`, because XLA would return `x` itself; `triad` is `b + 3 * c`. `gemm` multiplies
    random float32 matrices in each precision, `gemm-bfloat16` matrices of that type. Random data:
    a product of zeros takes less power, and so less time.
    """

    sweep: ClassVar[dict[str, Any]] = {"kind": [*_ARRAYS, *_GEMM_DTYPES], "size": list(ELEMENTS)}
    static: ClassVar[Sequence[str]] = ("kind",)
    precisions: ClassVar[Sequence[str]] = ("ieee", "tf32")
    targets: ClassVar[Sequence[str]] = ("cpu", "gpu")

    def inputs(self, kind: str, size: str) -> tuple[Spec, ...]:
        """Return one, two or two arrays."""
        if kind in _GEMM_DTYPES:
            matrix = spec((ORDER[size], ORDER[size]), _GEMM_DTYPES[kind])
            return matrix, matrix
        return (spec((ELEMENTS[size],)),) * (_ARRAYS[kind] - 1)

    @staticmethod
    def function(*arrays: Any, kind: str) -> Any:
        """Compute with JAX what `baseline` computes with another library."""
        return compute(kind, *arrays)

    @staticmethod
    def baseline(xp: Any, *arrays: Any, kind: str) -> Any:
        """Compute; operators alone, so the namespace is not needed."""
        return compute(kind, *arrays)

    def skip(self, *, kind: str, size: str, precision: str, target: str, **case: Any) -> str | None:
        """Return why a kind, size or precision says nothing about a target."""
        host = target == "cpu"
        if host != (size == "host"):
            return f"the size {size!r} is not for the target {target!r}"
        if host and kind == "gemm-bfloat16":
            return "products of bfloat16 are emulated on most processors"
        if precision != "ieee" and (host or kind != "gemm"):
            return "the precision of products matters to float32 matrices on a GPU alone"
        return None


def compute(kind: str, *arrays: Any) -> Any:
    """Return the result of one kind on arrays of any library."""
    if kind == "copy":
        return -arrays[0]
    if kind == "triad":
        return arrays[0] + 3 * arrays[1]
    return arrays[0] @ arrays[1]
