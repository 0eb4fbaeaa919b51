"""The baseline in CuPy, one kernel after another: what a user gets who replaces NumPy by CuPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from harness.declare.workload import Case, Workload, static_arguments
from harness.sides.cupy_library import count_compiles, cupy_environment, explain, require_cupy
from harness.sides.namespace import namespace
from harness.sides.side import Side, Unavailable

_COMPUTE_TYPES = {"ieee": "DEFAULT", "tf32": "TF32", "bf16": "BF16"}
"""A precision to what CuPy calls the way in which cuBLAS multiplies float32."""


class CupyEager(Side):
    """`baseline(xp, ...)` on CuPy's arrays. The other two CuPy sides differ in `build` only."""

    name = "cupy-eager"
    title = "the workload's baseline in CuPy, one kernel after another"
    families = ("gpu",)
    colour = "#E69F00"
    eager = True
    asynchronous = True
    scenarios = ("cold", "warm")
    one_precision = True
    owns = ("CUPY_", "CUDA_CACHE_", "NVIDIA_TF32_OVERRIDE")

    @classmethod
    def environment(cls, precision: str, folder: str) -> dict[str, str]:
        """Return the variables that CuPy reads."""
        return cupy_environment(folder, precision)

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
        if baseline is None:
            raise Unavailable(f"{workload.__qualname__} has no baseline")
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
                self._multiply_in(wanted)
            return function(*arguments)

        return precise

    def _multiply_in(self, compute_type: str) -> None:
        from cupy._core import _routines_linalg as linalg  # there where `require_cupy` passed

        self.cupy._core.set_compute_type(
            self.cupy.float32, getattr(linalg, f"COMPUTE_TYPE_{compute_type}")
        )
        self._compute_type = compute_type

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
        found = []
        for name, leaf, kind in self.leaves(arguments, result):
            if not isinstance(leaf, self.cupy.ndarray):
                found.append(f"transfer: {name} is a {kind}, not a cupy.ndarray on the device")
            elif leaf.device.id != current:
                found.append(f"device: {name} is on device {leaf.device.id}, not on {current}")
        return found

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
