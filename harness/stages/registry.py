"""All stages, and what is asked of them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.errors import find_name
from harness.stages.blocks import time_blocks, time_flights, time_returns
from harness.stages.stage import WHY, Stage, Step, between

if TYPE_CHECKING:
    from harness.records.schema import StageSamples

LONG_COMPILE_S = 30.0
"""A compile that takes longer is reported while it runs, and beside the tables."""

_ROWS = (
    Stage(name="import", title="What `import jax` takes.", step="process", asv={"off": "import"}),
    Stage(name="backend", title="Waking JAX's back end.", step="process", asv={"off": "backend"}),
    Stage(
        name="first_lower",
        title="Lowering a trivial program, the first of the process.",
        step="process",
        calibrated_by="lower",
        asv={"off": "first_lower"},
    ),
    Stage(
        name="first_compile",
        title="Compiling a trivial program, the first of the process.",
        step="process",
        calibrated_by="compile",
        asv={"off": "first_compile"},
    ),
    Stage(
        name="ready",
        title="From the start of the process until it can measure.",
        step="process",
        asv={"off": "ready"},
    ),
    Stage(
        name="trace",
        title="The function becomes a jaxpr.",
        step="build",
        calibrated_by="trace",
        colour="#56B4E9",
        take=lambda run: run.trace(),
        events={"trace": 1},
        stacked=True,
        asv={"off": "trace"},
        power={"default": 0.2},
        counted="trace_calls",
        clock="cpu",
    ),
    Stage(
        name="lower",
        title="The jaxpr becomes StableHLO.",
        step="build",
        calibrated_by="lower",
        effect=0.15,
        colour="#E69F00",
        take=lambda run: run.lower(),
        events={"lower": 1},
        stacked=True,
        asv={"off": "lower"},
        power={"default": 0.2},
        counted="lower_calls",
        clock="cpu",
    ),
    Stage(
        name="compile",
        title="XLA makes a program of it.",
        step="compile",
        calibrated_by="compile",
        effect=0.05,
        colour="#D55E00",
        take=lambda run: run.request_program(),
        events={"compile": 1},
        stacked=True,
        asv={"off": "compile"},
        power={"default": 0.1, "thorough": 0.05},
        clock="cpu",
        cpu_statistic=between,
    ),
    # Calls of the program
    Stage(
        name="dispatch",
        method=3,
        title="A call, until it returns.",
        step="run",
        statistic=min,
        effect=0.25,
        colour="#CC79A7",
        take=lambda run: run.repeated("dispatch", time_returns),
        asv={"off": "dispatch"},
    ),
    Stage(
        name="execute",
        method=3,
        title="A call, until its result is there.",
        step="run",
        statistic=min,
        effect=0.15,
        colour="#0072B2",
        take=lambda run: run.repeated("execute", time_blocks),
        stacked=True,
        asv={"off": "execute"},
        power={"default": 0.2, "thorough": 0.1},
    ),
    Stage(
        name="compute",
        method=2,
        title="The program's own work: a call computed inline, on one thread.",
        step="compute",
        statistic=min,
        effect=0.03,
        colour="#F0E442",
        take=lambda run: run.repeated_inline("compute"),
        asv={"off": "compute"},
        power={"default": 0.1, "thorough": 0.05},
    ),
    Stage(
        name="in_flight",
        method=3,
        title="A call among many that are not waited for, but for the last.",
        step="run",
        effect=0.25,
        colour="#6B4C9A",
        take=lambda run: run.repeated("in_flight", time_flights),
    ),
    Stage(
        name="load",
        title="The program is read: from the persistent cache, or a serialised executable.",
        step="load",
        calibrated_by="compile",
        colour="#009E73",
        take=lambda run: run.request_program(),
        stacked=True,
        asv={"warm": "load"},
    ),
    Stage(
        name="first_call",
        title="The first call of a jitted function in its process, until its result is there.",
        step="first_call",
        take=lambda run: run.first_call(),
        events={"trace": 1, "lower": 1},
        asv={"cold": "first_call_cold", "warm": "first_call_warm"},
    ),
    Stage(
        name="start",
        title="From the start of the process until the first result is there.",
        step="start",
        colour="#B8A100",
        take=lambda run: run.start(),
        asv={"cold": "start_cold", "warm": "start_warm"},
    ),
    Stage(
        name="loop",
        title="The plain Python loop that every process measures.",
        step="reference",
        statistic=min,
    ),
    Stage(
        name="latency",
        title="One call of a side of a comparison, until its result is there.",
        step="comparison",
        statistic=min,
    ),
    Stage(name="slope", title="What one more call costs among many.", step="comparison"),
)

STAGES: dict[str, Stage] = {stage.name: stage for stage in _ROWS}
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


def reason(samples: StageSamples) -> str:
    """Return why a stage has no samples, or what they stand for; empty where nothing is said."""
    return samples.reason or WHY.get(samples.unable, samples.unable)


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
