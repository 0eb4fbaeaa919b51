"""A measuring process that takes one side of a comparison."""

from __future__ import annotations

import gc
from typing import Any

import jax

from harness import targets
from harness.baselines import registry
from harness.baselines.compared_case import ComparedCase
from harness.baselines.side import Side, Unavailable
from harness.baselines.side_process import ProcessState
from harness.measure import containment
from harness.measure.job import (
    Bye,
    CurrentVisit,
    Done,
    Fatal,
    Job,
    JobCase,
    unmeasured,
    workload_of,
)
from harness.measure.session import Send, Session, measure, pass_by_pass
from harness.records import environment
from harness.records.schema import to_raw
from harness.stages.scenarios.registry import SCENARIOS
from harness.workload.code import LoadedCode
from harness.workload.workload import Case


def about(job: Job, side: Side) -> dict[str, Any]:
    """Return the flags and, where JAX computes, the device."""
    flags = environment.flags() | job.environment
    flags.pop("CUPY_CACHE_DIR", None)  # a scratch folder, whose path says nothing
    facts = {"flags": flags, "platform": targets.find(job.target).family}
    if not side.uses_jax:
        return facts
    device = jax.devices()[0]
    return facts | {
        "device": device.device_kind,
        "devices": jax.device_count(),
        "platform": device.platform,
        "platform_version": device.client.platform_version,
    }


def measure_side(session: Session, side: Side, state: ProcessState) -> None:
    """Measure the cases of a job on a side that is awake."""
    job = session.job
    gc.freeze()  # what the imports left need not be looked at again
    only_fill = SCENARIOS[job.scenario].directory == "filled"

    def made(ref: JobCase, case: Case) -> ComparedCase:
        return ComparedCase(session.workload, case, side, state, job.threads, only_fill=only_fill)

    measure(session, made, pass_by_pass)


def measure_job(job: Job, send: Send, current: CurrentVisit, state: ProcessState) -> None:
    """Measure the job's cases on its side, in a process whose environment is verified."""
    job.base["contained"] = containment.contain(job.memory_limit_bytes if job.on_host else None)
    code = LoadedCode()
    workload = workload_of(job, lambda reason: send(Fatal(reason)))
    if workload is None:
        return
    try:
        side = registry.find(job.backend)(job.target)
    except Unavailable as error:
        surroundings = to_raw(job.surroundings)
        for ref in job.cases:
            send(Done(unmeasured(job, ref, "skipped", str(error), environment=surroundings)))
        send(Bye())
    except RuntimeError as error:
        send(Fatal(f"JAX found no {job.target} device: {error}"))
    else:
        session = Session(job, workload, send, current, code, about=about(job, side))
        measure_side(session, side, state)
