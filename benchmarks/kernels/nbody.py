"""Accelerations between all pairs of bodies, without a matrix of pairs."""

from __future__ import annotations

import numpy as np

BODIES = 64
"""Bodies of a block; four threads share one body's sum."""


def accelerations_cpu():
    """Return the accelerations of float32 bodies in numba."""
    import numba

    zero, one, softening = np.float32(0), np.float32(1), np.float32(0.01)

    def accelerations(positions, masses):
        out = np.empty_like(positions)
        x, y, z = positions[0], positions[1], positions[2]
        for i in numba.prange(masses.size):
            ax, ay, az = zero, zero, zero
            for j in range(masses.size):
                dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                squared = dx * dx + dy * dy + dz * dz + softening
                weight = masses[j] * (one / (squared * np.sqrt(squared)))
                ax += weight * dx
                ay += weight * dy
                az += weight * dz
            out[0, i], out[1, i], out[2, i] = ax, ay, az
        return out

    # The order of the sums is free, which lets LLVM vectorize them. Work grows with the square, so
    # threads pay from few bodies on.
    return numba.njit(parallel=True, fastmath={"reassoc", "contract"})(accelerations)


KERNEL = """
// Set from outside: BODIES (of a block). Its 4 x BODIES threads load a tile of as many bodies, and
// each sums over a quarter of the tile.
constexpr int TILE = 4 * BODIES;

extern "C" __global__ void accelerations(
        const float* positions, const float* masses, float* out, int count) {
    __shared__ float4 tile[TILE];
    const float *x = positions, *y = positions + count, *z = positions + 2LL * count;
    const int body = blockIdx.x * BODIES + threadIdx.x;
    const int lane = threadIdx.y * BODIES + threadIdx.x;
    const int mine = min(body, count - 1);  // threads without a body still load tiles
    const float px = x[mine], py = y[mine], pz = z[mine];
    float ax = 0, ay = 0, az = 0;

    for (int first = 0; first < count; first += TILE) {
        const int other = first + lane;
        __syncthreads();
        tile[lane] = other < count ? float4{x[other], y[other], z[other], masses[other]}
                                   : float4{0, 0, 0, 0};  // no mass, no force
        __syncthreads();
        #pragma unroll 8
        for (int k = 0; k < BODIES; ++k) {
            const float4 b = tile[threadIdx.y * BODIES + k];
            const float dx = b.x - px, dy = b.y - py, dz = b.z - pz;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            const float weight = b.w * inverse * inverse * inverse;
            ax += weight * dx; ay += weight * dy; az += weight * dz;
        }
    }
    __syncthreads();
    tile[lane] = float4{ax, ay, az, 0};
    __syncthreads();
    if (threadIdx.y || body >= count) return;
    for (int part = 1; part < 4; ++part) {
        const float4 other = tile[part * BODIES + threadIdx.x];
        ax += other.x; ay += other.y; az += other.z;
    }
    out[body] = ax; out[count + body] = ay; out[2LL * count + body] = az;
}
"""


def source() -> str:
    """Return the CUDA source."""
    return f"#define BODIES {BODIES}\n{KERNEL}"


def accelerations_gpu():
    """Return the accelerations in CuPy, one kernel."""
    import cupy

    kernel = cupy.RawKernel(source(), "accelerations")

    def accelerations(positions, masses):
        out = cupy.empty_like(positions)
        count = masses.size
        grid = (-(-count // BODIES),)
        kernel(grid, (BODIES, 4), (positions, masses, out, cupy.int32(count)))
        return out

    return accelerations
