"""The work of one stage, for asv's profiler, which otherwise sees a reader look a figure up."""

from __future__ import annotations

from collections.abc import Callable

import jax

from harness import targets
from harness.declare.workload import SEVERAL_DEVICES, Case, Workload
from harness.stages.passes import Pass
from harness.stages.prepared import prepare
from harness.stages.registry import CASE_STAGES, STAGES
from harness.stages.scenarios.registry import SCENARIOS
from harness.watch.evidence import Evidence


def why_not(stage: str, case: Case) -> str:
    """Return why a figure cannot be profiled, "" where it can."""
    if stage not in CASE_STAGES:
        profiled = ", ".join(CASE_STAGES)
        return f"{stage} is no work of this process; asv's profiler sees {profiled}"
    if targets.find(case.target).compile_only:
        return f"{case.target} is compiled for in processes with an environment of its own"
    return ""


def work_of(workload: type[Workload], case: Case, stage: str) -> Callable[[], float]:
    """Do what comes before a stage in this process, and return what takes the stage once.

    That is the stage as it is measured, the loop over calls of `execute` included; it returns the
    seconds inside the clock.
    """
    jax.config.update("jax_platforms", targets.find(case.target).platforms)
    if workload.x64:
        jax.config.update("jax_enable_x64", True)
    if case.transform in SEVERAL_DEVICES:
        jax.config.update("jax_num_cpu_devices", targets.virtual_cpu_devices())
    jax.clear_caches()
    made = Pass(
        prepare(workload, case, None), Evidence(), SCENARIOS["off"], None, lambda name: None
    )
    for name in CASE_STAGES[: CASE_STAGES.index(stage)]:
        made.take(STAGES[name])

    def work() -> float:
        before = made.timed_ns
        made.take(STAGES[stage])
        return (made.timed_ns - before) / 1e9

    return work
