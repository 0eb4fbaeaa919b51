"""CUDA source run on a CPU, thread by thread: blocks one after the other, threads as fibers.

A thread of a block runs until it meets `__syncthreads` or a shuffle, and goes on when all others of
its block (or warp) have come as far. What differs from a device: the functions are libm's, sums are
not contracted unless the compiler does so, and there is no memory model to break.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++")
THREADS = 128
"""Of a block of an elementwise kernel."""

SHIM = r"""
#include <ucontext.h>
#include <cmath>
#include <cstdlib>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
struct dim3 { int x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <typename T> static inline T normcdf(T x) { return T(0.5) * std::erfc(-x * T(M_SQRT1_2)); }
template <typename T> static inline T min(T a, T b) { return a < b ? a : b; }

static const std::size_t STACK = 256 * 1024;
struct Fiber { ucontext_t context; char* stack; dim3 index; bool done; float given; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;

static void wait_for_all() { swapcontext(&fibers[current].context, &scheduler); }
#define __syncthreads() wait_for_all()
// Every thread of every warp comes here as often, so that all of a block may wait.
static float __shfl_xor_sync(unsigned, float value, int distance) {
    fibers[current].given = value;
    wait_for_all();
    const float other = fibers[current ^ distance].given;
    wait_for_all();
    return other;
}

struct Launch { void (*call)(void**); void** arguments; };
static Launch launch;
static void begin() {
    launch.call(launch.arguments);
    fibers[current].done = true;
    swapcontext(&fibers[current].context, &scheduler);
}

static void run(dim3 grid, dim3 block, void (*call)(void**), void** arguments) {
    launch = {call, arguments};
    gridDim = grid; blockDim = block;
    const int count = block.x * block.y * block.z;
    fibers.resize(count);
    for (Fiber& each : fibers) each.stack = static_cast<char*>(std::malloc(STACK));
    for (int b = 0; b < grid.x * grid.y; ++b) {
        blockIdx = {b % grid.x, b / grid.x, 0};
        for (int t = 0; t < count; ++t) {
            Fiber& each = fibers[t];
            each.index = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
            each.done = false;
            getcontext(&each.context);
            each.context.uc_stack = {each.stack, 0, STACK};
            each.context.uc_link = &scheduler;
            makecontext(&each.context, begin, 0);
        }
        for (int left = count; left;) {
            left = 0;
            for (current = 0; current < count; ++current) {
                if (fibers[current].done) continue;
                threadIdx = fibers[current].index;
                swapcontext(&scheduler, &fibers[current].context);
                left += !fibers[current].done;
            }
        }
    }
    for (Fiber& each : fibers) std::free(each.stack);
}
"""

# Arrays are of floats, and numbers are integers.
_C = {np.float32: "float*", np.float64: "double*", np.int32: "int", np.int64: "long long"}


class OnCpu:
    """Kernels that are compiled once each into a folder, as is what all begin with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header = folder / "shim.h"
        self.header.write_text(SHIM)
        self._run("-o", f"{self.header}.gch", "-x", "c++-header", str(self.header))

    def launch(self, source: str, name: str, grid, block, arguments) -> None:
        """Run a kernel over arrays, which it may change, and NumPy's integers."""
        types = [_C[each.dtype.type] for each in arguments]
        passed = ", ".join(
            f"({kind}) arguments[{n}]" if kind.endswith("*") else f"*({kind}*) arguments[{n}]"
            for n, kind in enumerate(types)
        )
        text = f"""#include "{self.header}"
        {source}
        static void call(void** arguments) {{ {name}({passed}); }}
        extern "C" void start(int* grid, int* block, void** arguments) {{
            run({{grid[0], grid[1], 1}}, {{block[0], block[1], 1}}, call, arguments);
        }}"""
        library = self._compiled(text)
        arrays = [np.asarray(each) for each in arguments]  # of a number, one that holds it
        pointers = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
        sizes = [(ctypes.c_int * 2)(*(*shape, 1)[:2]) for shape in (grid, block)]
        library.start(*sizes, pointers)

    def _compiled(self, text: str) -> ctypes.CDLL:
        place = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
        if not place.exists():
            file = place.with_suffix(".cpp")
            file.write_text(text)
            self._run("-shared", "-o", str(place), str(file))
        return ctypes.CDLL(str(place))

    @staticmethod
    def _run(*words: str) -> None:
        command = [COMPILER, "-O1", "-w", "-fPIC", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class CupyOnCpu:
    """What `benchmarks/kernels` use of CuPy, over NumPy arrays."""

    int32 = np.int32
    empty, empty_like = staticmethod(np.empty), staticmethod(np.empty_like)
    sum, max = staticmethod(np.sum), staticmethod(np.max)

    def __init__(self, folder: Path) -> None:
        self.on_cpu = OnCpu(folder)
        self.elementwise: list[tuple[str, str, str, str]] = []
        """Of each elementwise kernel that was made: inputs, output, operation and name."""

    def RawKernel(self, source, name):
        """Return a kernel that is launched with grid, block and arguments."""

        def launch(grid, block, arguments):
            numbers = [np.int64(each) if type(each) is int else each for each in arguments]
            self.on_cpu.launch(source, name, grid, block, numbers)

        return launch

    def ElementwiseKernel(self, inputs, output, operation, name):
        """Return a kernel that broadcasts its inputs, and may be given its output."""
        self.elementwise.append((inputs, output, operation, name))
        parameters = [each.split() for each in inputs.split(",")]

        def launch(*arguments):
            given, out = arguments[: len(parameters)], arguments[len(parameters) :]
            whole = [words[0] == "T" for words in parameters]
            arrays = [each for each, one in zip(given, whole, strict=True) if one]
            shape = np.broadcast_shapes(*(each.shape for each in (*arrays, *out)))
            dtype = given[0].dtype
            result = out[0] if out else np.empty(shape, dtype)
            passed = [
                np.ascontiguousarray(np.broadcast_to(each, shape) if one else each)
                if isinstance(each, np.ndarray)
                else np.int32(each)
                for each, one in zip(given, whole, strict=True)
            ]
            source = _elementwise(parameters, output, operation, _C[dtype.type][:-1])
            blocks = -(-result.size // THREADS)
            passed += [result, np.int64(result.size)]
            self.on_cpu.launch(source, "elementwise", (blocks,), (THREADS,), passed)
            return result

        return launch


def _elementwise(parameters, output: str, operation: str, kind: str) -> str:
    """Return a kernel with an element a thread; `raw` arrays are indexed by the operation."""
    arguments, reads = [], []
    for *words, name in parameters:
        if words == ["T"]:
            arguments.append(f"const T* {name}_")
            reads.append(f"const T {name} = {name}_[i];")
        else:
            arguments.append(f"const T* {name}" if words == ["raw", "T"] else f"int {name}")
    result = output.split()[-1]
    return f"""
    typedef {kind} T;
    using std::exp; using std::log; using std::sqrt; using std::erf;
    void elementwise({", ".join(arguments)}, T* {result}_, long long size) {{
        const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
        if (i >= size) return;
        {" ".join(reads)}
        T {result};
        {{ {operation}; }}
        {result}_[i] = {result};
    }}"""
