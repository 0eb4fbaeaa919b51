"""Find the side that a backend's name stands for."""

from __future__ import annotations

from harness.sides.side import Side, Unavailable


def take(backend: str, target: str) -> Side:
    """Return the side of `backend` on `target`.

    Args:
        backend: one of :data:`harness.records.comparison.BACKENDS`.
        target: `cpu` or `gpu`.

    Raises:
        Unavailable: this machine or environment lacks what it needs.
        RuntimeError: JAX found no device of the target.
    """
    if backend == "xla":
        from harness.sides import xla_side

        return xla_side.take(target)
    if backend == "numpy":
        from harness.sides.numpy_side import NumpySide

        return NumpySide()
    if backend == "fused":
        from harness.sides.fused_side import FusedSide

        return FusedSide()
    try:
        from harness.sides.cupy_side import cupy_side
    except ImportError as error:
        raise Unavailable(f"CuPy's sides cannot be imported: {error}") from error
    side: Side = cupy_side(backend)
    return side
