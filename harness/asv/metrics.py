"""What asv shows of a workload: each figure, where it stands in records, and its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.declare.workload import Workload
from harness.program.facts import FACTS
from harness.stages.registry import DERIVED_METRICS, STAGES, asv_metrics


@dataclass(frozen=True)
class Metric:
    """One figure; less of it is better."""

    scenario: str
    """The state of the persistent cache in which it is taken."""
    stage: str
    """What it is called in the frame's column `stage`."""
    unit: str = "seconds"
    once: bool = False
    """It is of a process and not of a case."""

    @property
    def cached(self) -> bool:
        """Whether it needs the scenarios with a persistent cache."""
        return self.scenario != "off"


FACT_METRICS = tuple(name for name, fact in FACTS.items() if fact.better == "less")
"""The facts of a program, which no noise disturbs: a change of one is a change of the program. One
benchmark of asv has all of them, `track_facts`, whose first parameter is the fact."""

METRICS: Mapping[str, Metric] = {
    **{
        name: Metric(scenario, stage, once=STAGES[stage].step == "process")
        for name, (scenario, stage) in asv_metrics().items()
    },
    **{fact: Metric("off", fact, FACTS[fact].unit) for fact in FACT_METRICS},
    **{name: Metric(scenario, name, unit) for name, (scenario, unit) in DERIVED_METRICS.items()},
}
"""By asv's name."""


def case_metrics(workload: type[Workload]) -> tuple[str, ...]:
    """Return what asv shows of every case of a workload, besides facts."""
    cached = {"cold", "warm"} <= set(workload.scenarios)
    return tuple(
        name
        for name, one in METRICS.items()
        if not one.once and name not in FACT_METRICS and (cached or not one.cached)
    )


def process_metrics(workload: type[Workload]) -> tuple[str, ...]:
    """Return what asv shows of the processes that measured a workload."""
    return tuple(name for name, one in METRICS.items() if one.once and workload.process_stages)
