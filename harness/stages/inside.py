"""One more compile of a case, which is not timed, under XLA's own events."""

from __future__ import annotations

from collections.abc import Callable

import jax

from harness.program.compiler.inside import inside
from harness.program.compiler.recording import Untraceable, recorded
from harness.program.compiler.times import CompileTimes, compile_times
from harness.program.compiler.tree import CompileEvent
from harness.stages.build import Build
from harness.stages.prepared import Prepared
from harness.stages.scenarios.cache_state import switched_off


def open_up(prepared: Prepared, announce: Callable[[str], None]) -> CompileTimes:
    """Compile from nothing in memory, and return what a record keeps of what XLA did."""
    jax.clear_caches()
    build = Build.of(prepared)
    seen: list[CompileEvent] = []
    try:
        with switched_off():
            for name, step in build.steps():
                announce(name)
                if name == "compile":
                    seen = recorded(step)
                else:
                    step()
    except Untraceable as error:
        return CompileTimes(reason=str(error))
    tree = inside(seen, "")
    return compile_times(tree) if tree else CompileTimes(reason="XLA told nothing of it")
