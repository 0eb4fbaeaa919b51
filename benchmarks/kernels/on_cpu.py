"""What the kernels in numba share: threads where they pay, and functions that vectorize."""

from __future__ import annotations

import numpy as np

_WORTH_THREADS = 2**15
"""Elements from which on waking numba's threads costs less than it saves."""


def threaded(loop, fastmath):
    """Return `loop`, compiled with and without threads; its first argument's size decides."""
    import numba

    alone = numba.njit(fastmath=fastmath)(loop)
    together = numba.njit(parallel=True, fastmath=fastmath)(loop)

    def chosen(first, *others):
        return (together if first.size >= _WORTH_THREADS else alone)(first, *others)

    return chosen


def exponential():
    """Return `exp` of a float32 that LLVM can vectorize: libm's is a call for every element.

    `exp(x) = 2**n * exp(r)` with `n` the nearest integer to `x / log(2)`, and the Taylor
    polynomial of degree 7 in `|r| <= log(2) / 2`; 2 units in the last place. NaN stays NaN.
    """
    import numba

    f32, i32 = np.float32, np.int32
    least, greatest = f32(-87.3), f32(88.7)
    per_log2, high, low = f32(1 / np.log(2)), f32(0.693359375), f32(np.log(2) - 0.693359375)
    c2, c3, c4, c5, c6, c7 = (f32(1 / k) for k in (2, 6, 24, 120, 720, 5040))
    half, one = f32(0.5), f32(1)

    @numba.njit(fastmath={"contract"})
    def exp(x):
        x = least if x < least else x
        x = greatest if x > greatest else x
        n = np.floor(x * per_log2 + half)
        r = x - n * high - n * low
        tail = c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * c7))))
        scale = i32((i32(n) + i32(127)) << i32(23)).view(f32)
        return (one + r + r * r * tail) * scale

    return exp


def error_function(exp):
    """Return `erf` of a float32 that LLVM can vectorize, given such an `exp`.

    Abramowitz and Stegun, formula 7.1.26: within 1.5e-7 of the true value.
    """
    import numba

    p, a1, a2, a3, a4, a5 = map(
        np.float32,
        (0.3275911, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429),
    )
    zero, one = np.float32(0), np.float32(1)

    # LLVM finds it too long to put into a loop, and vectorizes no loop with a call in it.
    @numba.njit(fastmath={"contract"}, inline="always")
    def erf(x):
        sign = one if x > zero else -one
        t = one / (one + p * sign * x)
        return sign - sign * t * (a1 + t * (a2 + t * (a3 + t * (a4 + t * a5)))) * exp(-x * x)

    return erf


def highest():
    """Return the maximum of a float32 vector, in lanes because LLVM vectorizes no plain loop of it.

    It may miss a NaN, so that whoever calls it must still see every element.
    """
    import numba

    lanes = 32

    @numba.njit
    def maximum(x):
        tops = x[:lanes].copy()
        whole = x.size // lanes
        for block in range(1, whole):
            part = x[block * lanes : (block + 1) * lanes]
            for k in range(lanes):
                tops[k] = part[k] if part[k] > tops[k] else tops[k]
        top = tops[0]
        for k in range(1, tops.size):
            top = tops[k] if tops[k] > top else top
        for j in range(whole * lanes, x.size):
            top = x[j] if x[j] > top else top
        return top

    return maximum
