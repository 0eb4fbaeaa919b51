"""Programs as workloads of the harness: a class for each, made alike."""

from typing import Any

from harness import Workload
from tools.corpus.programs.program import Program

TIMEOUT_S = 60.0


def workloads(module: str, programs: dict[str, Program]) -> dict[str, type[Workload]]:
    """Return a workload for each program, by its name, as if `module` had declared it."""
    return {name: _workload(module, name, program) for name, program in programs.items()}


def _workload(module: str, name: str, program: Program) -> type[Workload]:
    class Foreign(Workload):
        """Somebody else's function, with the arguments that its project makes."""

        targets = ("cpu",)
        sweep = {"size": program.sizes}
        x64 = program.x64
        timeout_s = TIMEOUT_S
        function = staticmethod(program.function)

        def inputs(self, size: str) -> tuple[Any, ...]:
            return program.inputs(size)

    Foreign.__module__, Foreign.__name__, Foreign.__qualname__ = module, name, name
    return Foreign
