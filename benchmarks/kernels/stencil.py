"""One step of the heat equation, in one pass over the grid."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.on_cpu import threaded


def heat_cpu():
    """Return a step of a float32 grid with periodic edges in numba."""
    import numba

    rate, four = np.float32(0.1), np.float32(4)

    def step(u):
        rows, columns = u.shape
        new, last = np.empty_like(u), columns - 1
        for i in numba.prange(rows):
            up, here, down = u[i - 1 if i else rows - 1], u[i], u[i + 1 if i + 1 < rows else 0]
            # The inner loop has no wrap in it, so that LLVM vectorizes it.
            for j in range(1, last):
                around = up[j] + down[j] + here[j - 1] + here[j + 1]
                new[i, j] = here[j] + rate * (around - four * here[j])
            around = up[0] + down[0] + here[last] + here[1]
            new[i, 0] = here[0] + rate * (around - four * here[0])
            around = up[last] + down[last] + here[last - 1] + here[0]
            new[i, last] = here[last] + rate * (around - four * here[last])
        return new

    compiled = threaded(step, {"contract"})
    return lambda u, *, form: compiled(u)


def plate_cpu():
    """Return a step of a float32 grid whose edge keeps its values in numba."""
    import numba

    rate, four = np.float32(0.1), np.float32(4)

    def step(u):
        rows, columns = u.shape
        new = np.empty_like(u)
        for i in numba.prange(rows):
            if i == 0 or i == rows - 1:
                for j in range(columns):
                    new[i, j] = u[i, j]
            else:
                up, here, down = u[i - 1], u[i], u[i + 1]
                new[i, 0], new[i, columns - 1] = here[0], here[columns - 1]
                for j in range(1, columns - 1):
                    around = up[j] + down[j] + here[j - 1] + here[j + 1]
                    new[i, j] = here[j] + rate * (around - four * here[j])
        return new

    compiled = threaded(step, {"contract"})
    return lambda u, *, form: compiled(u)


HEAT = """
const int row = int(i) / columns, column = int(i) % columns, here = row * columns;
const int up = (row ? row - 1 : rows - 1) * columns;
const int down = (row + 1 < rows ? row + 1 : 0) * columns;
const int left = column ? column - 1 : columns - 1;
const int right = column + 1 < columns ? column + 1 : 0;
const T middle = u[here + column];
const T around = u[up + column] + u[down + column] + u[here + left] + u[here + right];
next = middle + T(0.1) * (around - T(4) * middle);
"""

PLATE = """
const int row = int(i) / columns, column = int(i) % columns, at = int(i);
const T middle = u[at];
if (row == 0 || row + 1 == rows || column == 0 || column + 1 == columns) {
    next = middle;
} else {
    const T around = u[at - columns] + u[at + columns] + u[at - 1] + u[at + 1];
    next = middle + T(0.1) * (around - T(4) * middle);
}
"""


def heat_gpu():
    """Return a step of a grid with periodic edges in CuPy, one kernel."""
    return _on_gpu(HEAT, "heat")


def plate_gpu():
    """Return a step of a grid whose edge keeps its values in CuPy, one kernel."""
    return _on_gpu(PLATE, "plate")


def _on_gpu(body, name):
    import cupy

    kernel = cupy.ElementwiseKernel("raw T u, int32 rows, int32 columns", "T next", body, name)

    def step(u, *, form):
        return kernel(u, *u.shape, cupy.empty_like(u))

    return step
