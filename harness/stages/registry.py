"""All stages, and what is asked of them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.errors import find_name
from harness.stages import (
    backend,
    compile,
    compute,
    dispatch,
    execute,
    first_call,
    first_compile,
    first_lower,
    import_,
    in_flight,
    latency,
    load,
    loop,
    lower,
    ready,
    slope,
    start,
    trace,
)
from harness.stages.stage import Stage, Step

if TYPE_CHECKING:
    from harness.records.schema import StageSamples

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        import_.STAGE,
        backend.STAGE,
        first_lower.STAGE,
        first_compile.STAGE,
        ready.STAGE,
        trace.STAGE,
        lower.STAGE,
        compile.STAGE,
        dispatch.STAGE,
        execute.STAGE,
        compute.STAGE,
        in_flight.STAGE,
        load.STAGE,
        first_call.STAGE,
        start.STAGE,
        loop.STAGE,
        latency.STAGE,
        slope.STAGE,
    )
}
"""Every stage by name, in the order in which a program goes through them."""

_OTHER = Stage(name="other", title="A benchmark that is no stage of ours.", step="comparison")

CASE: tuple[Step, ...] = ("build", "compile", "run", "compute")
"""The steps of a case without a persistent cache."""


def find(name: str) -> Stage:
    """Return the stage of that name.

    Raises:
        UsageError: there is none; the known ones are named.
    """
    return STAGES[find_name(name, STAGES, "stage")]


def stage_of(name: str) -> Stage:
    """Return the stage of that name, or what is held of a benchmark that is no stage of ours."""
    return STAGES.get(name, _OTHER)


def names(*steps: Step, where: Callable[[Stage], bool] = lambda stage: True) -> tuple[str, ...]:
    """Return the names of the stages that the given steps take (all where none is given)."""
    return tuple(s.name for s in STAGES.values() if (not steps or s.step in steps) and where(s))


thresholds: dict[str, float] = {}
"""The smallest change that counts, of stages for which the project asks for another."""


def effect(name: str) -> float:
    """Return the smallest change of a stage that counts."""
    return thresholds.get(name, stage_of(name).effect)


def calibrated_by(name: str) -> str:
    """Return the stage of the reference that a stage is divided by, "" where it is no stage."""
    return STAGES[name].calibrated_by if name in STAGES else ""


def values_ns(stages: Mapping[str, StageSamples]) -> dict[str, float]:
    """Return the one value that a process stands for, of each stage that has samples."""
    return {
        stage: stage_of(stage).statistic(samples.samples_ns)
        for stage, samples in stages.items()
        if samples.samples_ns
    }


def asv_metrics() -> Mapping[str, tuple[str, str]]:
    """Return the scenario and stage of every metric that asv shows, in order."""
    return {
        metric: (scenario, stage.name)
        for stage in STAGES.values()
        for scenario, metric in stage.asv.items()
    }


DERIVED_METRICS = {"entry_bytes": ("cold", "bytes"), "relative_warm": ("warm", "ratio")}
"""Scenario and unit of what asv shows of the persistent cache besides stages. `relative_warm` is
the first call's time, warm / cold."""

ALONE_STAGES = names("first_call", "start")
"""Stages whose every sample has a process of its own."""


ALONE_METRICS = frozenset(
    {name for name, (_, stage) in asv_metrics().items() if stage in ALONE_STAGES}
    | {"relative_warm"}
)
"""What asv shows of them."""

ALONE = "+alone"
"""Ends the version of those metrics, so that asv keeps them apart from what was called so when it
was taken in a process that had built the program already."""


def used(stage: str) -> str:
    """Return what frames call a stage that was taken in such a used process."""
    return f"used_{stage}"


CASE_STAGES = names(*CASE)
"""The stages of a case without a persistent cache, in order."""

OF_CALLS = names("run", where=lambda stage: stage.statistic is min)
"""Stages of single calls: the median is shown, and of each process the least is compared."""

OWN_PROGRAM = names("compute")
"""Stages of processes that may build another program of a case than users run."""

PROCESS_STAGES = names("process")
"""What a process pays once; records of the workload `process` hold them."""
