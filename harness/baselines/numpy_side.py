"""The baseline in NumPy: what a user has who has not heard of JAX."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from functools import partial
from typing import Any

from harness.baselines.side import Side, last_level_cache, namespace
from harness.workload.workload import Case, Workload, static_arguments


class NumpySide(Side):
    """`baseline(xp, ...)` on NumPy's arrays."""

    name = "numpy"
    title = "the workload's baseline in NumPy"
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
