"""Softmax, layer normalization and logsumexp of float32 matrices."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.kernels.on_cpu import exponential, highest, threaded

# The order of a sum is free, which lets LLVM vectorize it; NaN and infinities keep their meaning.
_SUMS = {"reassoc", "contract"}


def softmax_cpu():
    """Return softmax over the rows of a matrix in numba."""
    import numba

    exp, maximum, zero, one = exponential(), highest(), np.float32(0), np.float32(1)

    def softmax(x):
        y = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            row, out = x[i], y[i]
            top, total = maximum(row), zero
            for j in range(row.size):
                weight = exp(row[j] - top)
                out[j] = weight
                total += weight
            scale = one / total
            for j in range(row.size):
                out[j] *= scale
        return y

    return threaded(softmax, _SUMS)


def layer_norm_cpu():
    """Return layer normalization over the rows of a matrix in numba."""
    import numba

    zero, one, epsilon = np.float32(0), np.float32(1), np.float32(1e-6)

    def layer_norm(x, scale, shift):
        y = np.empty_like(x)
        width = np.float32(x.shape[1])
        for i in numba.prange(x.shape[0]):
            total, squares = zero, zero
            for j in range(x.shape[1]):
                total += x[i, j]
            mean = total / width
            for j in range(x.shape[1]):
                centred = x[i, j] - mean
                squares += centred * centred
            inverse = one / np.sqrt(squares / width + epsilon)
            for j in range(x.shape[1]):
                y[i, j] = (x[i, j] - mean) * inverse * scale[j] + shift[j]
        return y

    return threaded(layer_norm, _SUMS)


def reduce_cpu():
    """Return the three operators of `Reduce`; for `sum` and `max` there is nothing to fuse."""
    import numba

    exp, maximum, zero, columns = exponential(), highest(), np.float32(0), 64

    def of_rows(x):
        out = np.empty(x.shape[0], np.float32)
        for i in numba.prange(x.shape[0]):
            row = x[i]
            top, total = maximum(row), zero
            for j in range(row.size):
                total += exp(row[j] - top)
            out[i] = top + math.log(total)
        return out

    def of_columns(x):
        out = np.empty(x.shape[1], np.float32)
        for block in numba.prange((x.shape[1] + columns - 1) // columns):
            first, last = block * columns, min((block + 1) * columns, x.shape[1])
            top, total = x[0, first:last].copy(), np.zeros(last - first, np.float32)
            for i in range(1, x.shape[0]):
                part = x[i, first:last]
                for j in range(part.size):
                    top[j] = part[j] if part[j] > top[j] else top[j]
            for i in range(x.shape[0]):
                part = x[i, first:last]
                for j in range(part.size):
                    total[j] += exp(part[j] - top[j])
            for j in range(last - first):
                out[first + j] = top[j] + math.log(total[j])
        return out

    fused = {1: threaded(of_rows, _SUMS), 0: threaded(of_columns, {"contract"})}
    plain = {"sum": np.sum, "max": np.max}

    def reduce(x, *, operator, axis):
        return fused[axis](x) if operator == "logsumexp" else plain[operator](x, axis=axis)

    return reduce
