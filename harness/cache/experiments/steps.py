"""The steps in which JAX builds a program, each on the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness.stages import cold_pass as stages

STEPS = ("trace", "lower", "compile")


def build(
    function: Any, arguments: Sequence[Any], static: Mapping[str, Any]
) -> tuple[Any, dict[str, float]]:
    """Trace, lower and compile a jitted function; return the program, and seconds by step."""
    clock = time.perf_counter
    with stages.gc_off():
        times = [clock()]
        traced = function.trace(*arguments, **static)
        times.append(clock())
        lowered = traced.lower()
        times.append(clock())
        compiled = lowered.compile()
        times.append(clock())
    return compiled, {step: times[i + 1] - times[i] for i, step in enumerate(STEPS)}
