"""The fused baseline on the CPU: numexpr or numba, by somebody who cares for speed."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from harness.baselines.numpy_side import NumpySide
from harness.baselines.side import Unavailable
from harness.workload.workload import Case, Workload, static_arguments


class FusedSide(NumpySide):
    """`fused_cpu()` on NumPy's arrays. What it compiles is compiled in the first call."""

    name = "fused"
    title = "the workload's fused CPU baseline (numexpr or numba)"
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
