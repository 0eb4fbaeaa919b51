"""The baseline on the CPU: in NumPy, which a user has without JAX, or fused by hand."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from harness.baselines.side import Side, Unavailable, last_level_cache, namespace
from harness.workload.workload import Case, Workload, static_arguments


class NumpySide(Side):
    """`baseline(xp, ...)` on NumPy's arrays."""

    name = "numpy"
    families = ("cpu",)
    colour = "#E69F00"
    eager = True
    rounds_narrow_sums = True

    def __init__(self, target: str = "cpu") -> None:
        import numpy  # it reads variables when imported: after they were verified

        self.numpy: Any = numpy

    def versions(self) -> dict[str, str]:
        """Return NumPy's version and that of the array API layer."""
        compat = importlib.metadata.version("array-api-compat")
        return {"numpy": self.numpy.__version__, "array-api-compat": compat}

    def put(self, arguments: Any) -> Any:
        """Return the arguments: they are NumPy's already."""
        return arguments

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return `baseline` with `xp` and the static arguments filled in."""
        assert workload.baseline is not None
        return partial(workload.baseline, namespace("numpy"), **static_arguments(workload, case))

    def wait(self, result: Any) -> None:
        """Return at once: NumPy is done when it returns."""

    def done(self, result: Any) -> bool:
        """Return True."""
        return True

    def fetch(self, result: Any) -> Any:
        """Return a result's leaves as NumPy arrays; NumPy's scalars become arrays."""
        return self.tree.tree_map(self.numpy.asarray, result)

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return which results are no arrays of NumPy: another library computed them."""
        own = (self.numpy.ndarray, self.numpy.generic, int, float, complex)
        return [
            f"{name} is a {kind}, not NumPy's"
            for name, leaf, kind in self.leaves((), result)
            if not isinstance(leaf, own)
        ]

    def cache_bytes(self) -> int | None:
        """Return the size of the processor's last-level cache."""
        return last_level_cache()


class FusedSide(NumpySide):
    """`fused_cpu()` on NumPy's arrays. What it compiles is compiled in the first call."""

    name = "fused"
    families = ("cpu",)
    colour = "#D55E00"
    eager = False

    @classmethod
    def measures(cls, workload: type[Workload]) -> bool:
        """Tell whether the workload has a `fused_cpu` besides its baseline."""
        return workload.baseline is not None and workload.fused_cpu is not None

    def versions(self) -> dict[str, str]:
        """Return the versions of NumPy and of those compilers that were imported."""
        compilers = [name for name in ("numba", "numexpr") if name in sys.modules]
        return super().versions() | {name: importlib.metadata.version(name) for name in compilers}

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return the workload's fused function with the static arguments filled in."""
        assert workload.fused_cpu is not None
        try:
            function = workload.fused_cpu()
        except ImportError as error:
            raise Unavailable(
                f"fused_cpu cannot be imported here ({error}); install the extra 'baselines'"
            ) from error
        return partial(function, **static_arguments(workload, case))
