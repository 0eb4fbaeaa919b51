"""Attention in CUDA that never writes the score matrix: a running softmax over tiles of keys.

Plain float32 arithmetic, no tensor cores: the twin of what XLA computes at precision `ieee`.
"""

from __future__ import annotations

import functools

THREADS = 64
"""Queries of a block, one per thread."""

KERNEL = """
// Set from outside: DIM, THREADS (queries of a block). A tile is 32 keys and their values.
constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(THREADS) attention(
        const float* query, const float* key, const float* value, float* out, int length) {
    __shared__ float4 keys[TILE][DIM / 4], values[TILE][DIM / 4];
    const long long head = (long long) blockIdx.y * length * DIM;
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const float scale = rsqrtf((float) DIM);

    float4 q[DIM / 4], sum[DIM / 4];
    const float4* from = reinterpret_cast<const float4*>(query + head + (long long) row * DIM);
    #pragma unroll
    for (int d = 0; d < DIM / 4; ++d) {
        q[d] = row < length ? from[d] : float4{0, 0, 0, 0};
        q[d].x *= scale; q[d].y *= scale; q[d].z *= scale; q[d].w *= scale;
        sum[d] = float4{0, 0, 0, 0};
    }

    float top = -3.4e38f, total = 0;
    for (int first = 0; first < length; first += TILE) {
        const int count = min(TILE, length - first);
        const long long start = head + (long long) first * DIM;
        __syncthreads();  // everybody is through with the tile before
        for (int k = threadIdx.x; k < count * (DIM / 4); k += THREADS) {
            const int j = k / (DIM / 4), d = k % (DIM / 4);
            keys[j][d] = reinterpret_cast<const float4*>(key + start)[k];
            values[j][d] = reinterpret_cast<const float4*>(value + start)[k];
        }
        __syncthreads();

        float scores[TILE], highest = top;
        #pragma unroll
        for (int j = 0; j < TILE; ++j) {
            // All threads read the same key: one broadcast from shared memory.
            float4 s = {0, 0, 0, 0};
            #pragma unroll
            for (int d = 0; d < DIM / 4; ++d) {
                const float4 k = keys[j][d];
                s.x += q[d].x * k.x; s.y += q[d].y * k.y; s.z += q[d].z * k.z; s.w += q[d].w * k.w;
            }
            scores[j] = j < count ? (s.x + s.y) + (s.z + s.w) : -3.4e38f;
            highest = fmaxf(highest, scores[j]);
        }
        const float shrink = expf(top - highest);
        top = highest;
        total *= shrink;
        #pragma unroll
        for (int d = 0; d < DIM / 4; ++d) {
            sum[d].x *= shrink; sum[d].y *= shrink; sum[d].z *= shrink; sum[d].w *= shrink;
        }
        #pragma unroll
        for (int j = 0; j < TILE; ++j) {
            if (j >= count) break;
            const float weight = expf(scores[j] - top);
            total += weight;
            #pragma unroll
            for (int d = 0; d < DIM / 4; ++d) {
                const float4 v = values[j][d];
                sum[d].x += weight * v.x; sum[d].y += weight * v.y;
                sum[d].z += weight * v.z; sum[d].w += weight * v.w;
            }
        }
    }
    if (row >= length) return;
    const float inverse = 1 / total;
    float4* to = reinterpret_cast<float4*>(out + head + (long long) row * DIM);
    #pragma unroll
    for (int d = 0; d < DIM / 4; ++d) {
        const float4 s = sum[d];
        to[d] = float4{s.x * inverse, s.y * inverse, s.z * inverse, s.w * inverse};
    }
}
"""


def source(dim: int) -> str:
    """Return the CUDA source for heads of `dim` elements, a multiple of 4."""
    return f"#define DIM {dim}\n#define THREADS {THREADS}\n{KERNEL}"


def attention_gpu():
    """Return attention over arrays of shape (batch, heads, length, dim) in CuPy, one kernel."""
    import cupy

    @functools.cache
    def compiled(dim):
        return cupy.RawKernel(source(dim), "attention")

    def attention(query, key, value):
        batch, heads, length, dim = query.shape
        out = cupy.empty_like(query)
        grid = (-(-length // THREADS), batch * heads)
        compiled(dim)(grid, (THREADS,), (query, key, value, out, cupy.int32(length)))
        return out

    return attention
