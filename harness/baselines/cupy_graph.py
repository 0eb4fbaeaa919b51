"""The baseline in CuPy, captured as a CUDA graph: its launches cost as little as XLA's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.baselines.cupy_eager import CupyEager, explain
from harness.baselines.side import Unavailable
from harness.workload.workload import Case, Workload


@dataclass(frozen=True)
class Captured:
    """One graph, with all that it reads and writes, which must live as long as it does."""

    graph: Any
    arguments: tuple[Any, ...]
    result: Any
    pool: Any
    stream: Any


class CupyGraph(CupyEager):
    """Replays the baseline; the inputs of a graph are fixed, so each set of them has its own.

    The graph of a set is captured when the set is first seen, `build`'s at once, and counted among
    the compiles: a sample that contains a capture is wrong.
    """

    name = "cupy-graph"
    families = ("gpu",)
    colour = "#56B4E9"
    eager = False

    def __init__(self, target: str = "gpu") -> None:
        super().__init__(target)
        self.captures = 0
        self.last: Captured | None = None
        self._new_stream()

    def _new_stream(self) -> None:
        self.stream = self.cupy.cuda.Stream(non_blocking=True)  # the null stream cannot capture

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return a function that launches the graph of the arguments that it is given.

        It returns the same arrays each time, overwritten by each launch.
        """
        eager = self._in_precision(self.plain(workload, case), case)
        graphs: dict[tuple[int, ...], Captured] = {}

        def replay(*arguments: Any) -> Any:
            # A graph keeps its arguments alive, so their ids stay theirs.
            captured = graphs.get(tuple(map(id, arguments)))
            if captured is None:
                captured = self._capture(eager, arguments)
                graphs[tuple(map(id, arguments))] = captured
            captured.graph.launch(captured.stream)
            self.last = captured
            return captured.result

        first = tuple(arguments)
        graphs[tuple(map(id, first))] = self._capture(eager, first)
        return replay

    def done(self, result: Any) -> bool:
        """Tell whether the graph that was launched last is done."""
        return bool((self.last or self).stream.done)

    def _capture(self, eager: Callable[..., Any], arguments: tuple[Any, ...]) -> Captured:
        # The graph has a memory pool of its own, so nothing else is given the memory of its
        # temporaries between two launches.
        pool = self.cupy.cuda.MemoryPool()
        try:
            with self.cupy.cuda.using_allocator(pool.malloc), self.stream:
                warm = eager(*arguments)  # compiles, and takes the memory that the capture needs
                self.stream.synchronize()
                del warm
                self.stream.begin_capture()
                try:
                    result = eager(*arguments)
                except BaseException:  # a stream must not be left capturing
                    with contextlib.suppress(RuntimeError):
                        self.stream.end_capture()
                    raise
                graph = self.stream.end_capture()
        except Exception as error:  # whatever a baseline does that a capture does not allow
            self._new_stream()  # a stream whose capture failed is of no more use
            raise Unavailable(
                f"the baseline cannot be captured as a CUDA graph: {explain(error)}"
            ) from error
        self.captures += 1
        return Captured(graph, arguments, result, pool, self.stream)

    def compiles(self) -> dict[str, int]:
        """Return what the kernel cache did, and how many graphs were captured."""
        return {**super().compiles(), "captures": self.captures}
