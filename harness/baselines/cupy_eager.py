"""The baseline in CuPy, one kernel after another: what a user gets who replaces NumPy by CuPy."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.baselines.side import Side, Unavailable, namespace
from harness.workload.workload import Case, Workload, static_arguments

DRIVER_FILE = Path("/dev/nvidiactl")
"""There as soon as NVIDIA's driver is loaded."""

_TF32 = {"": "0", "ieee": "0", "tf32": "1", "bf16": "0"}

_COMPUTE_TYPES = {"ieee": "DEFAULT", "tf32": "TF32", "bf16": "BF16"}
"""A precision to what CuPy calls the way in which cuBLAS multiplies float32."""

_BY_STATUS = {
    2: "the device's memory is exhausted",
    35: "no CUDA driver, or one that is too old for this CuPy",
    46: "the device is busy, or in a mode that lets one process use it",
    100: "no CUDA device",
    209: "this CuPy has no code for this device",
}
"""CUDARuntimeError.status to a reason; see cudaError_t in NVIDIA's documentation."""


class CupyEager(Side):
    """`baseline(xp, ...)` on CuPy's arrays. The other two CuPy sides differ in `build` only."""

    name = "cupy-eager"
    families = ("gpu",)
    colour = "#E69F00"
    eager = True
    asynchronous = True
    scenarios = ("cold", "warm")
    one_precision = True
    owns = ("CUPY_", "CUDA_CACHE_", "NVIDIA_TF32_OVERRIDE")

    @classmethod
    def environment(cls, precision: str, folder: str) -> dict[str, str]:
        """Return the variables that CuPy reads when it is imported.

        An empty `folder` is a cold cache, one that another process filled a warm one. The driver's
        own cache is off, so that a cold cache is cold. `ieee` forbids the tensor cores to every
        library of the process; without a precision the side sets it per case.
        """
        forbidden = {"NVIDIA_TF32_OVERRIDE": "0"} if precision == "ieee" else {}
        return {
            "CUPY_CACHE_DIR": folder,
            "CUPY_CACHE_IN_MEMORY": "0",
            "CUPY_ACCELERATORS": "cub",
            "CUPY_TF32": _TF32[precision],
            "CUDA_CACHE_DISABLE": "1",
            **forbidden,
        }

    def __init__(self, target: str = "gpu") -> None:
        self.cupy: Any = require_cupy()
        self.counts = count_compiles()
        self.stream: Any = self.cupy.cuda.get_current_stream()
        self._compute_type = ""

    def versions(self) -> dict[str, str]:
        """Return the versions of CuPy, the CUDA runtime and driver, and NVRTC."""
        cuda = self.cupy.cuda
        return {
            "cupy": str(self.cupy.__version__),
            "cuda_runtime": str(cuda.runtime.runtimeGetVersion()),
            "cuda_driver": str(cuda.runtime.driverGetVersion()),
            "nvrtc": ".".join(map(str, cuda.nvrtc.getVersion())),
            "cupy_accelerators": os.environ.get("CUPY_ACCELERATORS", "cub"),
        }

    def put(self, arguments: Any) -> Any:
        """Return the arguments on the device; finished when this returns."""
        try:
            placed = self.tree.tree_map(self.cupy.asarray, arguments)
        except (RuntimeError, MemoryError) as error:
            raise Unavailable(f"the inputs cannot be put on the device: {explain(error)}") from None
        self.wait(None)
        return placed

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return `baseline` with `xp` and the static arguments filled in."""
        return self._in_precision(self.plain(workload, case), case)

    def plain(self, workload: type[Workload], case: Case) -> Callable[..., Any]:
        """Return the baseline as a function of the arguments alone."""
        baseline = workload.baseline
        assert baseline is not None
        xp = namespace("cupy")
        static = static_arguments(workload, case)

        def eager(*arguments: Any) -> Any:
            return baseline(xp, *arguments, **static)

        eager.__name__ = workload.__name__
        return eager

    def _in_precision(self, function: Callable[..., Any], case: Case) -> Callable[..., Any]:
        """Let cuBLAS multiply as the case says, whatever the case before it said."""
        wanted = _COMPUTE_TYPES[case.precision or "ieee"]
        if wanted != "DEFAULT" and os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
            raise Unavailable(f"NVIDIA_TF32_OVERRIDE=0 forbids the precision {case.precision!r}")

        def precise(*arguments: Any) -> Any:
            if self._compute_type != wanted:
                from cupy._core import _routines_linalg as linalg  # there after `require_cupy`

                compute_type = getattr(linalg, f"COMPUTE_TYPE_{wanted}")
                self.cupy._core.set_compute_type(self.cupy.float32, compute_type)
                self._compute_type = wanted
            return function(*arguments)

        return precise

    def wait(self, result: Any) -> None:
        """Return when all streams of the device are done."""
        self.cupy.cuda.Device().synchronize()

    def done(self, result: Any) -> bool:
        """Tell whether everything on the working stream is done."""
        return bool(self.stream.done)

    def fetch(self, result: Any) -> Any:
        """Return a result as NumPy arrays."""
        return self.tree.tree_map(self.cupy.asnumpy, result)

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return which arguments and results are not arrays on the current device."""
        current = int(self.cupy.cuda.runtime.getDevice())
        wrong = []
        for name, leaf, kind in self.leaves(arguments, result):
            if not isinstance(leaf, self.cupy.ndarray):
                wrong.append(f"transfer: {name} is a {kind}, not a cupy.ndarray on the device")
            elif leaf.device.id != current:
                wrong.append(f"device: {name} is on device {leaf.device.id}, not on {current}")
        return wrong

    def labels(self) -> list[str]:
        """Return `cub-off` where CuPy reduces without CUB, and whose stream works."""
        accelerators = os.environ.get("CUPY_ACCELERATORS", "cub").split(",")
        stream = "null" if self.stream.ptr == 0 else "own"
        return [*(["cub-off"] if "cub" not in accelerators else []), f"stream-{stream}"]

    def compiles(self) -> Mapping[str, int]:
        """Return what CuPy's kernel cache did so far; empty where CuPy cannot be made to tell."""
        return dict(self.counts or {})

    def cache_bytes(self) -> int | None:
        """Return the size of the device's L2 cache."""
        cuda = self.cupy.cuda
        device = int(cuda.runtime.getDevice())
        return int(cuda.runtime.getDeviceProperties(device)["l2CacheSize"]) or None


def lacking() -> str | None:
    """Return why CuPy cannot compute here, without importing it; None if it seems that it can."""
    if not importlib.util.find_spec("cupy"):
        return "CuPy is not installed (extra 'gpu')"
    if not DRIVER_FILE.exists():
        return f"no CUDA driver ({DRIVER_FILE} does not exist)"
    return None


def require_cupy() -> Any:
    """Return the module `cupy`, proven to compile and run a kernel."""
    reason = lacking()
    if reason:
        raise Unavailable(reason)
    try:
        import cupy  # of the extra `baselines`; it reads variables when imported
    except (ImportError, OSError) as error:
        raise Unavailable(f"CuPy cannot be imported: {error}") from error
    if not cupy.cuda.is_available():
        raise Unavailable("no CUDA device that CuPy can use (cupy.cuda.is_available() is False)")
    try:
        # A kernel of its own: one of CuPy's would be compiled already when a baseline wants it.
        kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", "harness_probe")
        proof = kernel(cupy.asarray([1.0], "float32")).get().tolist()
    except RuntimeError as error:
        raise Unavailable(f"CuPy could not run one small kernel: {explain(error)}") from error
    if proof != [2.0]:
        raise Unavailable(f"CuPy computed 1 + 1 = {proof}; the device or driver is broken")
    return cupy


def explain(error: BaseException) -> str:
    """Return in one sentence what an exception of CuPy means."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    if name == "OutOfMemoryError":
        return f"the device's memory is exhausted: {text}"
    if name == "DynamicLibNotFoundError":
        return f"a library of CUDA is missing (cupy-cuda13x[ctk] brings them): {text}"
    reason = _BY_STATUS.get(getattr(error, "status", -1))
    return f"{reason} ({text})" if reason else f"{name}: {text}"


def count_compiles() -> dict[str, int] | None:
    """Make CuPy count what its kernel cache does, from now on.

    Returns `hits`, `misses` and `bytes` (of kernels read and written), which go on counting, or
    None where this CuPy has no such hook. A miss is a compilation by NVRTC. The hook is private
    and there since CuPy 14.1.
    """
    try:
        from cupy.cuda import compiler  # as `cupy` itself

        before: Any = compiler._kernel_cache_backend
        base: Any = compiler._KernelCacheBackend
        install = compiler._set_kernel_cache_backend
    except (ImportError, AttributeError):
        return None
    counts = {"hits": 0, "misses": 0, "bytes": 0}

    class Counting(base):  # type: ignore[misc, unused-ignore]
        def load(self, name: str) -> bytes | None:
            payload: bytes | None = before.load(name)
            counts["misses" if payload is None else "hits"] += 1
            counts["bytes"] += len(payload or b"")
            return payload

        def save(self, name: str, cubin: bytes, source: str) -> None:
            counts["bytes"] += len(cubin)
            before.save(name, cubin, source)

    install(Counting())
    return counts
