"""A measuring process: what it knows, its cases in random order, and the records that it sends."""

from __future__ import annotations

import functools
import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import psutil

from harness.declare.code import LoadedCode
from harness.declare.source import METHOD_VERSION
from harness.declare.workload import Case, Workload
from harness.engine import channel
from harness.engine.case_run import CaseRun
from harness.engine.job import Bye, Done, Hello, Job, JobCase, Message
from harness.engine.visit import REFERENCE, CurrentVisit
from harness.records import environment
from harness.records.schema import Record, StageSamples, to_raw
from harness.stages import injection
from harness.stages.first_call_case import FirstCallCase
from harness.stages.passes import gc_off
from harness.stages.reference import Reference
from harness.stages.registry import values_ns
from harness.stages.sampling import visits
from harness.stages.stage import LOOP
from harness.stages.staged_case import StagedCase
from harness.targets.topologies import Topology, unusable
from harness.watch.evidence import Evidence

Send = Callable[[Message], None]

_clock = time.perf_counter_ns


@dataclass(eq=False)
class Session(ABC):
    """One process that measures one job."""

    job: Job
    workload: type[Workload]
    send: Send
    current: CurrentVisit
    code: LoadedCode

    def __post_init__(self) -> None:
        job = self.job
        self.project = job.project
        self.timed_ns = 0.0
        self.started_at_ms = time.time_ns() // 1_000_000
        self.load_average = list(psutil.getloadavg())
        self.environment = to_raw(
            {
                **job.surroundings,
                "x64": bool(jax.config.values["jax_enable_x64"]),
                **self.describe(),
            }
        )

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what the process found out about its flags and its device."""

    @abstractmethod
    def runs(self) -> dict[str, CaseRun]:
        """Return what is to be visited, by the key of the case."""

    def measure(self) -> None:
        """Measure every case of the job, and say goodbye."""
        contained = self.job.base.get("contained", [])
        self.send(Hello(self.environment, self.load_average, contained))
        self.prepare()
        gc.freeze()  # what the imports left need not be looked at again
        began = _clock()
        self._visit(self.runs())
        self.send(Bye(self.timed_ns, _clock() - began))

    @abstractmethod
    def prepare(self) -> None:
        """Pay what a process pays once."""

    def _visit(self, runs: dict[str, CaseRun]) -> None:
        # A reference goes first as well, so that a quick process is calibrated before it ends.
        order = visits(list(runs), self.job.passes, self.job.seed)
        last = {key: number for number, (_, key) in enumerate(order)}
        waiting: list[CaseRun] = []
        for number, (pass_, key) in enumerate(order):
            run = runs[key]
            if run.over:
                continue
            run.visit(pass_)
            if last[key] == number and not run.over:
                waiting.append(run)
            reference = runs.get(REFERENCE)
            if reference is None or reference.passes or reference.over:
                for done in waiting:
                    self.finish(done)
                waiting.clear()

    def finish(self, run: CaseRun) -> None:
        """Send the record of a case."""
        run.finish({})

    def cases(self) -> Iterator[tuple[JobCase, Case]]:
        """Yield the job's cases; for those that this process does not know it sends a record."""
        for ref, case, reason in self.job.matched(self.workload):
            if case is None:
                failed = self.record(ref.key, axes={}, transform="", status="failed", reason=reason)
                self.send(Done(failed))
            else:
                yield ref, case

    def record(self, key: str, **fields: Any) -> Record:
        """Return a record with everything in it that the job and the process know."""
        base = {
            **self.job.base,
            "key": key,
            "comparison": self.job.comparison,
            "environment": self.environment,
            "code": self.code.entries(self.project, self.workload.depends_on),
            "load_average": self.load_average,
            "started_at_ms": self.started_at_ms,
            **fields,
        }
        return Record(**base)


@dataclass(eq=False)
class StagedSession(Session):
    """A process that takes the stages of its cases: it has woken a back end."""

    proof: Evidence
    process_ns: dict[str, float] | None
    """What it has paid once; None where it has been forked, and has not paid it all."""
    topology: Topology | None = None
    work: injection.Work | None = None

    def describe(self) -> dict[str, Any]:
        """Return the flags and the device, that of the topology where there is one."""
        device = jax.devices()[0]
        kind, count = device.device_kind, jax.device_count()
        if self.topology is not None:
            device, count = self.topology.device, len(self.topology.devices)
            kind = f"{device.device_kind} (compile-only)"
        return {
            "flags": environment.flags(),
            "device": kind,
            "devices": count,
            "platform": device.platform,
            "platform_version": device.client.platform_version,
        }

    def prepare(self) -> None:
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
        if any(ref.extra_ns for ref in self.job.cases):
            self.work = injection.measure_work()

    def runs(self) -> dict[str, CaseRun]:
        """Return the cases, and the reference program."""
        job = self.job
        self.reference = StagedCase(
            Reference, Case(), self.proof, topology=self.topology, is_reference=True
        )
        self.staged: dict[str, StagedCase] = {}
        runs = {REFERENCE: CaseRun(self, None, self.reference)}
        for ref, case in self.cases():
            staged = StagedCase(
                self.workload,
                case,
                self.proof,
                scenario=job.scenario,
                folder=job.cache_folder,
                topology=self.topology,
                expected=ref.fingerprint,
                programs=job.programs,
                extra_ns=ref.extra_ns,
                turns=self.work.turns(ref.extra_ns) if self.work else {},
            )
            self.staged[ref.key] = staged
            runs[ref.key] = CaseRun(self, ref, staged)
        return runs

    def _visit(self, runs: dict[str, CaseRun]) -> None:
        """Also count Python's calls, in the first process of a group: all would count the same.

        And compile once more to see the inside of it, where that is asked for. Last, because it
        slows down what follows.
        """
        super()._visit(runs)
        for key, staged in self.staged.items() if self.job.process == 0 else ():
            runs[key].add("facts", staged.count)
        if self.job.inside:
            from harness.stages.inside import open_up  # what no process needs to be ready

            for key, staged in self.staged.items():
                if (prepared := staged.prepared) is not None:
                    runs[key].add("compile_times", functools.partial(open_up, prepared))

    def finish(self, run: CaseRun) -> None:
        """Send the record of a case; with the reference program's, that of the process itself."""
        reference_ns = values_ns(self.reference.stages())
        if run.ref is None and self.process_ns is not None:
            process = self.record(
                self.job.process_key,
                workload="process",
                version=str(METHOD_VERSION),
                static=[],
                axes={},
                transform="forward",
                status="ok",
                stages={stage: StageSamples([float(ns)]) for stage, ns in self.process_ns.items()},
                reference_ns=reference_ns,
            )
            self.send(Done(process))
        run.finish(reference_ns)


class FirstCallSession(StagedSession):
    """A process that has woken a back end, and does nothing before the first call."""

    def measure(self) -> None:
        """Take the first call of the job's case; nothing else is built, none of memory frozen."""
        self.send(Hello(self.environment, self.load_average))
        began = _clock()
        for ref, case in self.cases():
            called = FirstCallCase(
                self.workload,
                case,
                self.proof,
                spawned_ns=channel.spawned_ns(),
                scenario=self.job.scenario,
                folder=self.job.cache_folder,
                expected=ref.fingerprint,
            )
            run = CaseRun(self, ref, called)
            run.visit(0)
            if not run.over:
                run.finish({LOOP: called.loop_ns})
        self.send(Bye(self.timed_ns, _clock() - began))
