"""Softmax, layer normalization and logsumexp in CUDA: every row is read once and kept in registers.

One block, or for short rows one warp, has a row. Each thread holds `QUADS` groups of four elements,
whose number is known when the kernel is compiled; so there is one kernel per width.
"""

from __future__ import annotations

import functools

MAX_THREADS = 1024
"""Of a block. Rows wider than 64 elements per thread spill registers, and are still right."""

_COMMON = """
// Set from outside: WIDTH, THREADS of a row, ROWS of a block (several only where a row has a warp).
constexpr int QUADS = WIDTH / 4 / THREADS;
static_assert(WIDTH == 4 * THREADS * QUADS, "THREADS must divide a quarter of WIDTH");

struct Sum { static __device__ float of(float a, float b) { return a + b; } };
// A NaN may be lost here; the sum that follows sees it.
struct Max { static __device__ float of(float a, float b) { return fmaxf(a, b); } };

template <typename Operator> __device__ float reduce_row(float value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value = Operator::of(value, __shfl_xor_sync(0xffffffff, value, distance));
    if (THREADS > 32) {
        __shared__ float parts[THREADS / 32];
        __syncthreads();  // every thread has read what an earlier reduction left here
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[0];
        for (int warp = 1; warp < THREADS / 32; ++warp) value = Operator::of(value, parts[warp]);
    }
    return value;
}

struct Row {
    float4 quads[QUADS];

    __device__ float* begin() { return reinterpret_cast<float*>(quads); }

    __device__ void load(const float* from) {
        #pragma unroll
        for (int q = 0; q < QUADS; ++q)
            quads[q] = reinterpret_cast<const float4*>(from)[q * THREADS + threadIdx.x];
    }

    __device__ void store(float* to) {
        #pragma unroll
        for (int q = 0; q < QUADS; ++q)
            reinterpret_cast<float4*>(to)[q * THREADS + threadIdx.x] = quads[q];
    }
};

#define EACH(k) _Pragma("unroll") for (int k = 0; k < 4 * QUADS; ++k)
"""

SOFTMAX = """
extern "C" __global__ void softmax(const float* x, float* y, long long rows) {
    const long long row = blockIdx.x * (long long) ROWS + threadIdx.y;
    if (row >= rows) return;  // with several rows in a block nobody waits for another
    Row data;
    data.load(x + row * WIDTH);
    float* v = data.begin();
    float top = v[0], total = 0;
    EACH(k) top = fmaxf(top, v[k]);
    top = reduce_row<Max>(top);
    EACH(k) total += v[k] = expf(v[k] - top);
    const float scale = 1 / reduce_row<Sum>(total);
    EACH(k) v[k] *= scale;
    data.store(y + row * WIDTH);
}
"""

LAYER_NORM = """
extern "C" __global__ void layer_norm(
        const float* x, const float* scale, const float* shift, float* y, long long rows) {
    const long long row = blockIdx.x * (long long) ROWS + threadIdx.y;
    if (row >= rows) return;
    Row data;
    data.load(x + row * WIDTH);
    float* v = data.begin();
    float total = 0, squares = 0;
    EACH(k) total += v[k];
    const float mean = reduce_row<Sum>(total) / WIDTH;
    EACH(k) { v[k] -= mean; squares += v[k] * v[k]; }
    const float inverse = rsqrtf(reduce_row<Sum>(squares) / WIDTH + 1e-6f);
    // The same four columns of scale and shift for every row: they stay in the cache.
    #pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        const float4 a = reinterpret_cast<const float4*>(scale)[q * THREADS + threadIdx.x];
        const float4 b = reinterpret_cast<const float4*>(shift)[q * THREADS + threadIdx.x];
        float4& out = data.quads[q];
        out.x = out.x * inverse * a.x + b.x;
        out.y = out.y * inverse * a.y + b.y;
        out.z = out.z * inverse * a.z + b.z;
        out.w = out.w * inverse * a.w + b.w;
    }
    data.store(y + row * WIDTH);
}
"""

LOGSUMEXP_ROWS = """
extern "C" __global__ void logsumexp_rows(const float* x, float* out, long long rows) {
    const long long row = blockIdx.x * (long long) ROWS + threadIdx.y;
    if (row >= rows) return;
    Row data;
    data.load(x + row * WIDTH);
    float* v = data.begin();
    float top = v[0], total = 0;
    EACH(k) top = fmaxf(top, v[k]);
    top = reduce_row<Max>(top);
    EACH(k) total += expf(v[k] - top);
    total = reduce_row<Sum>(total);
    if (threadIdx.x == 0) out[row] = top + logf(total);
}
"""

LOGSUMEXP_COLUMNS = """
// A block has 32 columns; its 32 warps share the rows, and each thread keeps a running pair of
// maximum and sum, so that the matrix is read once.
struct Pair {
    float top, total;
    __device__ void add(float other, float weight) {
        if (other > top) { total = total * expf(top - other) + weight; top = other; }
        else total += weight * expf(other - top);
    }
};

extern "C" __global__ void logsumexp_columns(
        const float* x, float* out, long long rows, long long columns) {
    __shared__ Pair pairs[32][33];
    const long long column = blockIdx.x * 32LL + threadIdx.x;
    Pair mine = {-3.4e38f, 0};
    if (column < columns)
        for (long long row = threadIdx.y; row < rows; row += 32)
            mine.add(x[row * columns + column], 1);
    pairs[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int part = 1; part < 32; ++part) {
            const Pair other = pairs[part][threadIdx.x];
            mine.add(other.top, other.total);
        }
        out[column] = mine.top + logf(mine.total);
    }
}
"""


def block(width: int) -> tuple[int, int]:
    """Return how many threads work on a row of `width` elements, and on how many rows a block.

    Raises:
        ValueError: a row cannot be split evenly.
    """
    threads = min(MAX_THREADS, max(32, width // 16))
    if width % (4 * threads) or threads % 32:
        raise ValueError(
            f"the rows have {width} elements; these kernels need a power of two from 128 on"
        )
    return threads, 4 if threads == 32 else 1


def source(kernel: str, width: int) -> str:
    """Return the CUDA source of a kernel for rows of `width` elements."""
    threads, rows = block(width)
    sizes = {"WIDTH": width, "THREADS": threads, "ROWS": rows}
    return "".join(f"#define {name} {size}\n" for name, size in sizes.items()) + _COMMON + kernel


@functools.cache
def _kernel(kernel: str, name: str, width: int):
    import cupy

    return cupy.RawKernel(source(kernel, width), name)


def _launch(kernel: str, name: str, arrays) -> None:
    rows, width = arrays[0].shape
    threads, per_block = block(width)
    grid = (-(-rows // per_block),)
    _kernel(kernel, name, width)(grid, (threads, per_block), (*arrays, rows))


def softmax_gpu():
    """Return softmax over the rows of a matrix in CuPy, one kernel."""
    import cupy

    def softmax(x):
        y = cupy.empty_like(x)
        _launch(SOFTMAX, "softmax", (x, y))
        return y

    return softmax


def layer_norm_gpu():
    """Return layer normalization over the rows of a matrix in CuPy, one kernel."""
    import cupy

    def layer_norm(x, scale, shift):
        y = cupy.empty_like(x)
        _launch(LAYER_NORM, "layer_norm", (x, scale, shift, y))
        return y

    return layer_norm


def reduce_gpu():
    """Return the three operators of `Reduce`; `sum` and `max` are CuPy's own kernels."""
    import cupy

    by_column = cupy.RawKernel(LOGSUMEXP_COLUMNS, "logsumexp_columns")
    plain = {"sum": cupy.sum, "max": cupy.max}

    def reduce(x, *, operator, axis):
        if operator != "logsumexp":
            return plain[operator](x, axis=axis)
        rows, columns = x.shape
        if axis == 1:
            out = cupy.empty(rows, x.dtype)
            _launch(LOGSUMEXP_ROWS, "logsumexp_rows", (x, out))
        else:
            out = cupy.empty(columns, x.dtype)
            by_column((-(-columns // 32),), (32, 32), (x, out, rows, columns))
        return out

    return reduce
