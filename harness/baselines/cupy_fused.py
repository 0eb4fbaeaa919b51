"""The baseline by somebody who fuses by hand, or else by `cupy.fuse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.baselines.cupy_eager import CupyEager
from harness.baselines.side import Unavailable
from harness.workload.workload import Case, Workload, static_arguments

FALLBACK = "fuse-fallback"
"""The label of a function that `cupy.fuse` could only compile in its new way, which starts as many
blocks as fit on one multiprocessor and leaves the others idle (CuPy 14.2): no baseline."""


class CupyFused(CupyEager):
    """`fused_gpu()` where a workload has it, else `cupy.fuse` of its baseline."""

    name = "cupy-fused"
    families = ("gpu",)
    colour = "#D55E00"
    eager = False

    def __init__(self, target: str = "gpu") -> None:
        super().__init__(target)
        self._called: Any = None

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return the fused function; whether `cupy.fuse` fell back is known after its first call.

        `problems` and `labels` speak of the function that was called last.
        """
        if workload.fused_gpu is not None:
            written, static = workload.fused_gpu(), static_arguments(workload, case)

            def by_hand(*arguments: Any) -> Any:
                self._called = None
                return written(*arguments, **static)

            return self._in_precision(by_hand, case)
        fusion = Fused(self.cupy.fuse, self.plain(workload, case), arguments, self.tree)

        def fused(*arguments: Any) -> Any:
            self._called = fusion
            try:
                return fusion(*arguments)
            except (TypeError, NotImplementedError, AttributeError, IndexError) as error:
                raise Unavailable(f"cupy.fuse cannot fuse the baseline: {error}") from error

        return self._in_precision(fused, case)

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return what the eager side returns, and whether `cupy.fuse` fell back."""
        wrong = super().problems(arguments, result)
        if fell_back(self._called):
            wrong.append(
                f"{FALLBACK}: cupy.fuse took its new way, which uses one multiprocessor's worth of "
                "blocks only; give the workload a fused_gpu"
            )
        return wrong

    def labels(self) -> list[str]:
        """Return what the eager side returns, and `fuse-fallback`."""
        return [*super().labels(), *([FALLBACK] if fell_back(self._called) else [])]


class Fused:
    """A function that `cupy.fuse` made of one that may take nested arguments.

    `cupy.fuse` itself takes positional arrays and numbers only.
    """

    def __init__(
        self, make: Callable[..., Any], function: Callable[..., Any], like: Any, tree: Any
    ) -> None:
        """Fuse by `make`, which is `cupy.fuse`, for arguments `like` these.

        `tree` is `jax.tree_util`.
        """
        self._flatten = tree.tree_leaves
        self._flat = tree.all_leaves(like)
        structure = tree.tree_structure(tuple(like))

        def positional(*values: Any) -> Any:
            return function(*tree.tree_unflatten(structure, values))

        name = getattr(function, "__name__", "baseline")
        self.fusion: Any = make(kernel_name=name)(function if self._flat else positional)

    def __call__(self, *arguments: Any) -> Any:
        """Compute with one kernel, or with as few as `cupy.fuse` manages."""
        return self.fusion(*(arguments if self._flat else self._flatten(arguments)))


def fell_back(fused: Fused | None) -> bool:
    """Tell whether `cupy.fuse` took its new way in a call before."""
    return fused is not None and fused.fusion.new_fusion is not None
