"""Are two results the same? A way that computes something else is not a fast one."""

from __future__ import annotations

from typing import Any

import numpy as np

RTOL = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4}
"""Relative tolerance of results by dtype; 1e-8 for wider floats, none for everything else."""


def difference(expected: list[Any], got: list[Any]) -> str | None:
    """Return how two results differ, leaf by leaf, or None where they agree within `RTOL`."""
    if len(expected) != len(got):
        return f"the result has {len(got)} leaves; the plain path's has {len(expected)}"
    for number, pair in enumerate(zip(expected, got, strict=True)):
        one, other = (leaf[0] if isinstance(leaf, tuple) else leaf for leaf in pair)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return (
                f"leaf {number} of the result is {other.dtype}{other.shape}; the plain path's is "
                f"{one.dtype}{one.shape}"
            )
        if not _close(one, other):
            return f"leaf {number} of the result has other values than the plain path's"
    return None


def _close(first: Any, second: Any) -> bool:
    if first.dtype.kind in "biu":
        return bool(np.array_equal(first, second))
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    one, other = first.astype(wide), second.astype(wide)
    rtol = RTOL.get(first.dtype.name, 1e-8)
    finite = np.abs(one[np.isfinite(one)])
    atol = rtol * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))
