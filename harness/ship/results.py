"""Are two results the same? A path that computes something else is not a fast one."""

from __future__ import annotations

from typing import Any

import numpy as np

RTOL = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4}
"""Relative tolerance of results by dtype; 1e-8 for wider floats, none for everything else."""


def difference(expected: list[Any], found: list[Any]) -> str | None:
    """Return how two results differ, leaf by leaf, or None where they agree within `RTOL`."""
    if len(expected) != len(found):
        return f"the result has {len(found)} leaves; the plain path's has {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        first, second = (leaf[0] if isinstance(leaf, tuple) else leaf for leaf in (one, other))
        if (first.shape, first.dtype) != (second.shape, second.dtype):
            return (
                f"leaf {number} of the result is {second.dtype}{second.shape}; the plain path's is "
                f"{first.dtype}{first.shape}"
            )
        if not _close(first, second):
            return f"leaf {number} of the result has other values than the plain path's"
    return None


def _close(first: Any, second: Any) -> bool:
    name = first.dtype.name
    if first.dtype.kind in "biu":
        return bool(np.array_equal(first, second))
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    one, other = first.astype(wide), second.astype(wide)
    rtol = RTOL.get(name, 1e-8)
    finite = np.abs(one[np.isfinite(one)])
    atol = rtol * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))
