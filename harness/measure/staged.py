"""Take the stages of cases: build them pass by pass, then call them; or call each a first time."""

from __future__ import annotations

import functools
import gc
import itertools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from harness.jaxhooks.evidence import Evidence
from harness.measure import channel
from harness.measure.job import REFERENCE, Done, JobCase
from harness.measure.session import CaseRun, Runs, Session, measure
from harness.program.collector import gc_off
from harness.records import environment
from harness.records.schema import StageSamples
from harness.stages import compute, injection
from harness.stages.reference import Reference
from harness.stages.registry import values_ns
from harness.stages.sampling import visits
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.stage import LOOP, Step
from harness.stages.staged_case import ArtefactCase, FirstCallCase, StagedCase
from harness.targets.topologies import Topology, unusable
from harness.workload.source import METHOD_VERSION
from harness.workload.workload import Case

AWAKE_S = 0.3
"""Calls before the first that are timed take so long, in seconds, over all cases together."""

_clock = time.perf_counter_ns


def about(topology: Topology | None) -> dict[str, Any]:
    """Return the flags and the device, that of the topology where there is one."""
    device = jax.devices()[0]
    kind, count = device.device_kind, jax.device_count()
    if topology is not None:
        device, count = topology.device, len(topology.devices)
        kind = f"{device.device_kind} (compile-only)"
    return {
        "flags": environment.flags(),
        "device": kind,
        "devices": count,
        "platform": device.platform,
        "platform_version": device.client.platform_version,
    }


@dataclass(eq=False)
class Staged:
    """A process that takes the stages of its cases: it has woken a back end."""

    session: Session
    proof: Evidence
    process_ns: dict[str, float] | None
    """What it has paid once; None where it has been forked, and has not paid it all."""
    topology: Topology | None = None
    work: injection.Work | None = None

    def measure(self) -> None:
        """Measure the cases of the job, and say goodbye."""
        if self.session.job.first_call:  # nothing else is built, none of memory frozen
            spawned_ns = channel.spawned_ns()
            first = functools.partial(self.case, FirstCallCase, spawned_ns=spawned_ns)
            measure(self.session, first, first_calls)
            return
        self.pay_once()
        gc.freeze()  # what the imports left need not be looked at again
        measure(self.session, functools.partial(self.case, StagedCase), self.build_and_call)

    def case(self, kind: type[StagedCase], ref: JobCase, case: Case, **own: Any) -> StagedCase:
        """Return a case of a kind, with what the job and the process know of it."""
        job = self.session.job
        if job.fills and SCENARIOS[job.scenario].artefact:
            kind, own = ArtefactCase, {}
        return kind(
            self.session.workload,
            case,
            self.proof,
            scenario=job.scenario,
            folder=job.cache_folder,
            wanted=job.passes,
            topology=self.topology,
            expected=ref.fingerprint,
            programs=job.programs,
            extra_ns=ref.extra_ns,
            turns=self.work.turns(ref.extra_ns) if self.work else {},
            **own,
        )

    def pay_once(self) -> None:
        """Compile one trivial program: what the first one of a process pays, kept by itself."""

        def first(x: Any) -> Any:
            return x + 1

        one = self.topology.one if self.topology else None
        traced = jax.jit(first).trace(jax.ShapeDtypeStruct((8,), "float32", sharding=one))
        with gc_off():
            begin = _clock()
            lowered = traced.lower()
            middle = _clock()
            try:
                lowered.compile()
            except Exception as error:  # what XLA says of a device that it cannot compile for
                if self.topology is None:
                    raise
                raise unusable(self.topology.target, error) from error
            end = _clock()
        if self.process_ns is not None:
            self.process_ns |= {"first_lower": middle - begin, "first_compile": end - middle}
        if any(ref.extra_ns for ref in self.session.job.cases):
            self.work = injection.measure_work()

    def build_and_call(self, session: Session, cases: Runs) -> None:
        """Build the cases pass by pass, and the reference program beside them; then call them.

        Also count Python's calls and hash the inputs, in the first process of a group: all would
        find the same. And compile once more to see the inside of it, where that is asked for. Last,
        because it slows down what follows.
        """
        job = session.job
        reference = StagedCase(
            Reference, Case(), self.proof, topology=self.topology, is_reference=True
        )
        runs = {REFERENCE: CaseRun(session, None, reference), **cases}
        for number, key in visits(list(runs), job.passes, job.seed):
            if not runs[key].over:
                runs[key].visit(number)
        reference_ns = values_ns(reference.stages())  # it is never called
        for run in cases.values():
            if _staged(run).built is not None and not run.over:
                run.send_built(reference_ns)
        call(runs, job.passes, job.seed)
        self.finish_process(reference_ns)
        for run in runs.values():
            if run.record is None:
                run.finish(reference_ns)
        for run in cases.values() if job.process == 0 else ():
            run.add("inputs", _staged(run).inputs)
            run.add("facts", _staged(run).count)
        if job.inside:
            from harness.stages.inside import open_up  # what no process needs to be ready

            for run in cases.values():
                if (prepared := _staged(run).prepared) is not None:
                    run.add("compile_times", functools.partial(open_up, prepared))

    def finish_process(self, reference_ns: dict[str, float]) -> None:
        """Send the record of the process itself."""
        if self.process_ns is None:
            return
        taken = {stage: StageSamples([float(ns)]) for stage, ns in self.process_ns.items()}
        fields: dict[str, Any] = {"workload": "process", "version": str(METHOD_VERSION)}
        fields |= {"static": [], "axes": {}, "transform": "forward", "status": "ok"}
        fields |= {"stages": taken, "reference_ns": reference_ns}
        self.session.send(Done(self.session.record(self.session.job.process_key, **fields)))


def first_calls(session: Session, runs: Runs) -> None:
    """Take the first call of each case; it is calibrated by the loop of its own visit."""
    for run in runs.values():
        run.visit(0)
        if run.record is None:
            run.finish({LOOP: min(_staged(run).loop_ns, default=0.0)})


def call(runs: Mapping[str, CaseRun], passes: int, seed: int) -> None:
    """Call all programs in one stretch: until the pool is awake, as users do, on one thread.

    A processor that was idle, or compiled, hands work to another thread slowly for some tenths of
    a second: what a loop of calls takes is seen later.
    """
    numbers = itertools.count(passes)  # each has its own time limit

    def called() -> dict[str, StagedCase]:
        cases = {key: _staged(run) for key, run in runs.items() if not run.over}
        return {key: case for key, case in cases.items() if case.built is not None}

    for key, case in called().items():
        runs[key].take(next(numbers), case.make_ready)
    awake = _clock() + AWAKE_S * 1e9
    for _ in range(2):  # what calls of more than their share leave of the time is for the others
        left_s, cases = (awake - _clock()) / 1e9, called()
        for key, case in cases.items() if left_s > AWAKE_S / 10 else ():
            warm = functools.partial(case.warm, left_s / len(cases))
            runs[key].take(next(numbers), warm)
    steps: tuple[tuple[Step, int], ...] = (
        ("run", passes),
        ("compute", max(passes, compute.ROUNDS)),
    )
    for step, rounds in steps:
        cases = called()
        for _, key in visits(list(cases), rounds, seed):
            if not runs[key].over:
                runs[key].take(next(numbers), functools.partial(cases[key].call, step))
    cases = called()
    again = [key for key, case in cases.items() if case.samples["compute"].disturbed]
    for key in random.Random(seed).sample(again, len(again)):
        runs[key].take(next(numbers), functools.partial(cases[key].call, "compute"))
    for case in cases.values():
        case.built = None


def _staged(run: CaseRun) -> StagedCase:
    assert isinstance(run.measured, StagedCase)
    return run.measured
