"""What asv's readers look up: records as values by case and metric, one value per process."""

from __future__ import annotations

from typing import Any

from harness.asv.metrics import FACT_METRICS
from harness.declare.workload import Workload, name_of
from harness.records.schema import Record, StageSamples, case_of
from harness.stages.registry import CASE_STAGES, PROCESS_STAGES, values_ns

Answer = dict[str, Any]


def answers(workload: type[Workload], records: list[Record]) -> Answer:
    """Turn records into what the readers look up: by case and stage, one value per process."""
    cases: dict[str, dict[str, list[Record]]] = {}
    process: list[Record] = []
    for record in records:
        if record.comparison is not None:
            continue  # another protocol: `harness baselines` shows it
        if record.workload == name_of(workload):
            scenarios = cases.setdefault(case_of(record).id, {})
            scenarios.setdefault(record.scenario, []).append(record)
        elif record.workload == "process" and record.scenario == "off":
            process.append(record)
    return {
        "cases": {
            case: {
                **_by_stage(found.get("off", []), CASE_STAGES),
                **_by_fact(found.get("off") or found.get("cold", [])),
                **_cache_answers(found.get("cold", []), found.get("warm", [])),
            }
            for case, found in cases.items()
        },
        "process": _by_stage(process, PROCESS_STAGES),
    }


def _cache_answers(cold: list[Record], warm: list[Record]) -> dict[str, Answer]:
    if not cold or not warm:
        return {}
    without = _by_stage(cold, ("first_call", "start"))
    with_cache = _by_stage(warm, ("load", "first_call", "start"))
    found = {
        "load": with_cache["load"],
        "first_call_cold": without["first_call"],
        "first_call_warm": with_cache["first_call"],
        "start_cold": without["start"],
        "start_warm": with_cache["start"],
        "entry_bytes": _samples([float(r.entry_bytes) for r in cold if r.entry_bytes]),
    }
    process = {r.replicate.rpartition("#")[2]: values_ns(r.stages).get("first_call") for r in cold}
    pairs = [
        (values_ns(r.stages).get("first_call"), process.get(r.replicate.rpartition("#")[2]))
        for r in warm
    ]
    found["relative_warm"] = _samples([w / c for w, c in pairs if w and c])
    return found


def _samples(values: list[float]) -> Answer:
    return {"samples": values, "number": 1} if values else {"skip": "nothing was measured"}


def _by_stage(records: list[Record], stages: tuple[str, ...]) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    good = _measured(records)
    if not good:
        return dict.fromkeys(stages, _why_nothing(records))
    for stage in stages:
        samples = [values_ns(record.stages)[stage] / 1e9 for record in good if _has(record, stage)]
        if samples:
            found[stage] = {"samples": samples, "number": 1}
            continue
        empty = [record.stages.get(stage, StageSamples()) for record in good]
        refused = sorted({reason for one in empty for reason in one.refused})
        if refused:
            found[stage] = {"fail": "every sample was refused: " + "; ".join(refused)}
        else:
            found[stage] = {"skip": "; ".join(sorted({one.reason for one in empty}))}
    return found


def _by_fact(records: list[Record]) -> dict[str, Answer]:
    """Return the facts of a program: one value each, for processes do not disagree on them."""
    good = _measured(records)
    if not good:
        return dict.fromkeys(FACT_METRICS, _why_nothing(records))
    found: dict[str, Answer] = {}
    for fact in FACT_METRICS:
        values = sorted({getattr(r.facts, fact) for r in good if r.facts} - {None})
        if len(values) > 1:
            text = ", ".join(f"{value:g}" for value in values)
            found[fact] = {"fail": f"processes built different programs: {fact} is {text}"}
        elif values:
            found[fact] = _samples([float(values[0])])
        else:
            found[fact] = {"skip": "neither JAX nor the back end says"}
    return found


def _measured(records: list[Record]) -> list[Record]:
    return [record for record in records if record.status in ("ok", "refused")]


def _why_nothing(records: list[Record]) -> Answer:
    reasons = sorted({record.reason for record in records})
    kind = "skip" if all(record.status == "skipped" for record in records) else "fail"
    return {kind: "; ".join(reasons)}


def _has(record: Record, stage: str) -> bool:
    return stage in record.stages and bool(record.stages[stage].samples_ns)
