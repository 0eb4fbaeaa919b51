"""What asv shows of a workload: each figure, its unit, and one value per process from records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.program.facts import BUILT, FACTS
from harness.records.schema import FIRST_CALL, Record, StageSamples, case_of
from harness.stages.registry import (
    ALONE_STAGES,
    DERIVED_METRICS,
    STAGES,
    asv_metrics,
    reason,
    values_ns,
)
from harness.workload.workload import Workload, name_of

Answer = dict[str, Any]

_ByScenario = Mapping[tuple[str, str], list[Record]]
"""By scenario, and `first_call` where processes took nothing else."""


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
        if not one.once and name not in FACT_METRICS and (cached or one.scenario == "off")
    )


def process_metrics(workload: type[Workload]) -> tuple[str, ...]:
    """Return what asv shows of the processes that measured a workload."""
    return tuple(name for name, one in METRICS.items() if one.once and workload.process_stages)


def answers(workload: type[Workload], records: list[Record]) -> Answer:
    """Turn records into what the readers look up: by case and metric, one value per process."""
    cases: dict[str, dict[tuple[str, str], list[Record]]] = {}
    process: dict[str, list[Record]] = {}
    for record in records:
        if record.comparison is not None:
            continue  # another protocol: `harness baselines` shows it
        if record.workload == name_of(workload):
            scenarios = cases.setdefault(case_of(record).id, {})
            alone = "first_call" if record.protocol.startswith(FIRST_CALL) else ""
            scenarios.setdefault((record.scenario, alone), []).append(record)
        elif record.workload == "process":
            process.setdefault(record.scenario, []).append(record)
    return {
        "cases": {case: _case(of_case) for case, of_case in cases.items()},
        "process": {
            name: _stage(process.get(one.scenario, []), one.stage)
            for name, one in METRICS.items()
            if one.once
        },
    }


def _case(records: _ByScenario) -> dict[str, Answer]:
    with_cache = bool(records.get(("cold", "")) and records.get(("warm", "")))
    return {
        name: _SPECIAL[name](records)
        if name in _SPECIAL
        else _stage(
            records.get((one.scenario, "first_call" if one.stage in ALONE_STAGES else ""), []),
            one.stage,
        )
        for name, one in METRICS.items()
        if not one.once and (with_cache or one.scenario == "off")
    }


def _stage(records: list[Record], stage: str) -> Answer:
    taken = [record.stages.get(stage, StageSamples()) for record in records]
    samples = [values_ns({stage: one})[stage] / 1e9 for one in taken if one.samples_ns]
    if samples:
        return _samples(samples)
    if not _measured(records):
        return _why_nothing(records)
    refused = sorted({reason for one in taken for reason in one.refused})
    if refused:
        return {"fail": "every sample was refused: " + "; ".join(refused)}
    return {"skip": "; ".join(sorted({*map(reason, taken)} - {""}))}


def _fact(records: _ByScenario, fact: str) -> Answer:
    """Return a fact of the program: one value, for processes do not disagree on it.

    Of Python's calls, the least.
    """
    of_case = records.get(("off", "")) or records.get(("cold", ""), [])
    good = _measured(of_case)
    if not good:
        return _why_nothing(of_case)
    values = sorted({getattr(r.facts, fact) for r in good if r.facts} - {None})
    if len(values) > 1 and fact in BUILT:
        text = ", ".join(f"{value:g}" for value in values)
        return {"fail": f"processes built different programs: {fact} is {text}"}
    return _samples([float(value) for value in values[:1]], "neither JAX nor the back end says")


def _entry_bytes(records: _ByScenario) -> Answer:
    return _samples([float(r.entry_bytes) for r in records["cold", ""] if r.entry_bytes])


def _relative_warm(records: _ByScenario) -> Answer:
    """Return the first call's time, warm / cold, of the processes of one number."""

    def first_calls(of_scenario: list[Record]) -> dict[str, float]:
        values = {r.replicate.rpartition("#")[2]: values_ns(r.stages) for r in of_scenario}
        return {number: one["first_call"] for number, one in values.items() if "first_call" in one}

    cold, warm = (first_calls(records.get((name, "first_call"), [])) for name in ("cold", "warm"))
    return _samples([warm[number] / cold[number] for number in warm if cold.get(number)])


_SPECIAL: dict[str, Callable[[_ByScenario], Answer]] = {
    **{fact: functools.partial(_fact, fact=fact) for fact in FACT_METRICS},
    "entry_bytes": _entry_bytes,
    "relative_warm": _relative_warm,
}
"""What is no stage's time."""


def _samples(values: list[float], without: str = "nothing was measured") -> Answer:
    return {"samples": values, "number": 1} if values else {"skip": without}


def _measured(records: list[Record]) -> list[Record]:
    return [record for record in records if record.status in ("ok", "refused")]


def _why_nothing(records: list[Record]) -> Answer:
    if not records:
        return {"skip": "no process was asked for it"}
    reasons = sorted({record.reason for record in records})
    kind = "skip" if all(record.status == "skipped" for record in records) else "fail"
    return {kind: "; ".join(reasons)}
