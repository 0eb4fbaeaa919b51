"""A measuring process: what it knows, its cases in random order, and the records that it sends."""

from __future__ import annotations

import functools
import gc
import itertools
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import psutil

from harness.declare.code import LoadedCode
from harness.declare.source import METHOD_VERSION
from harness.declare.transforms import NotApplicable
from harness.declare.workload import Case, Workload, WorkloadError, enumerate_cases
from harness.engine import channel, machine_load
from harness.engine.job import (
    REFERENCE,
    Bye,
    CurrentVisit,
    Done,
    Hello,
    Job,
    JobCase,
    Message,
    Visit,
)
from harness.program.collector import gc_off
from harness.records import environment
from harness.records.failure import failure
from harness.records.schema import Record, StageSamples, to_raw
from harness.sides.side import Unavailable
from harness.stages import compute, injection
from harness.stages.reference import Reference
from harness.stages.registry import values_ns
from harness.stages.sampling import visits
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.stage import LOOP, Step
from harness.stages.staged_case import ArtefactCase, FirstCallCase, StagedCase
from harness.targets.topologies import Topology, unusable
from harness.watch.evidence import Evidence

if TYPE_CHECKING:
    from harness.sides.compared_case import ComparedCase

Send = Callable[[Message], None]

AWAKE_S = 0.3
"""Calls before the first that are timed take so long, in seconds, over all cases together."""

_clock = time.perf_counter_ns


@dataclass(eq=False)
class CaseRun:
    """The passes over one case in this process, and the record they become."""

    session: Session
    ref: JobCase | None
    """None for the reference program."""
    measured: StagedCase | ComparedCase
    passes: int = 0
    over: bool = False
    failed: str = ""
    """Why it is over, where that is a fault."""
    record: Record | None = None
    """What was sent."""

    def visit(self, number: int) -> None:
        """Make one pass."""
        if self.take(number, functools.partial(self.measured.visit, number)):
            self.passes += 1

    def take(self, number: int, measure: Callable[[Callable[[str], None]], float]) -> bool:
        """Measure something; whatever the workload raises ends this case and no other.

        `measure` gets a function that it calls with each stage before that begins, and returns the
        nanoseconds inside timed regions. Returns whether it ended well.
        """
        try:
            self.session.timed_ns += measure(self._announcing(number))
        except (NotApplicable, Unavailable) as error:
            self._end("skipped", str(error))
        except WorkloadError as error:
            self.over, self.failed = True, str(error)
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            self.over, self.failed = True, failure(error, self.measured.who)
        return not self.over

    def add(self, field: str, find: Callable[[Callable[[str], None]], Any]) -> None:
        """Have more found out about the case, and send its record again if there is any."""
        if self.record is None or self.record.status != "ok":
            return
        try:
            found = find(self._announcing(self.passes))
        except (Exception, SystemExit):  # a user's function may raise anything; its times stand
            return
        if found is not None:
            setattr(self.record, field, found)
            self.session.send(Done(self.record))

    def _announcing(self, number: int) -> Callable[[str], None]:
        key = self.ref.key if self.ref else REFERENCE

        def announce(stage: str) -> None:
            self.session.current.write(Visit(key, number, stage))

        return announce

    def finish(self, reference_ns: dict[str, float]) -> None:
        """Send the record of a case; of one that failed, with the stages that were taken before."""
        stages = self.measured.stages()
        taken = any(samples.samples_ns for samples in stages.values())
        if self.failed and not (taken and isinstance(self.measured, StagedCase)):
            self._end("failed", self.failed)
            return
        fields = {"reference_ns": reference_ns, **self.measured.fields(), "stages": stages}
        if taken:
            self._end("failed" if self.failed else "ok", self.failed, **fields)
        else:
            reasons = {reason for samples in stages.values() for reason in samples.refused}
            self._end("refused", "; ".join(sorted(reasons)), **fields)

    def _end(self, status: str, reason: str, **fields: Any) -> None:
        self.over = True
        case, session = self.measured.case, self.session
        key = self.ref.key if self.ref else session.job.reference_key
        if self.ref is None:
            fields |= {"workload": "reference", "version": str(METHOD_VERSION), "static": []}
        about = {"axes": dict(case.axes), "transform": case.transform, "precision": case.precision}
        said = {"comparison": self.measured.comparison, "status": status, "reason": reason}
        self.record = session.record(key, **about, **said, **fields)
        session.send(Done(self.record))


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
        self.others = machine_load.Others(machine_load.process_s)
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
    def measured(self, ref: JobCase, case: Case) -> StagedCase | ComparedCase:
        """Return a case as it is visited."""

    def runs(self) -> dict[str, CaseRun]:
        """Return what is to be visited, by the key of the case."""
        return {ref.key: CaseRun(self, ref, self.measured(ref, case)) for ref, case in self.cases()}

    def measure(self) -> None:
        """Measure every case of the job, and say goodbye."""
        self.greet()
        self.prepare()
        gc.freeze()  # what the imports left need not be looked at again
        began = _clock()
        self._visit(self.runs())
        self.send(Bye(self.timed_ns, _clock() - began))

    def greet(self) -> None:
        """Say that the process is there, and what it is: for the record of a case that kills it."""
        contained = self.job.base.get("contained", [])
        self.send(Hello(self.environment, self.load_average, contained))

    @abstractmethod
    def prepare(self) -> None:
        """Pay what a process pays once."""

    def _visit(self, runs: dict[str, CaseRun]) -> None:
        for number, key in visits(list(runs), self.job.passes, self.job.seed):
            run = runs[key]
            if not run.over:
                run.visit(number)
            if run.record is None and (run.over or run.passes == self.job.passes):
                self.finish(run)

    def finish(self, run: CaseRun) -> None:
        """Send the record of a case."""
        run.finish({})

    def cases(self) -> Iterator[tuple[JobCase, Case]]:
        """Yield the job's cases; for those that this process does not know it sends a record."""
        known = dict(enumerate(enumerate_cases(self.workload, [self.job.target])))
        for ref in self.job.cases:
            case = known.get(ref.index)
            if case is not None and case.id == ref.id:
                yield ref, case
                continue
            reason = (
                f"case {ref.index} is {case.id if case else 'missing'} in the measuring process, "
                f"{ref.id} outside: a sweep must not depend on the process"
            )
            failed = self.record(ref.key, axes={}, transform="", status="failed", reason=reason)
            self.send(Done(failed))

    def record(self, key: str, **fields: Any) -> Record:
        """Return a record with everything in it that the job and the process know."""
        known: dict[str, Any] = {"environment": self.environment}
        known |= {"load_average": self.load_average, "started_at_ms": self.started_at_ms}
        known |= {"others_cores": round(self.others.cores(), 3)}
        known |= {"code": self.code.entries(self.project, self.workload.depends_on)}
        known |= {"comparison": self.job.comparison}
        return Record(**{**self.job.base, "key": key, **known, **fields})


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

    def staged(self, kind: type[StagedCase], ref: JobCase, case: Case, **own: Any) -> StagedCase:
        """Return a case of a kind, with what the job and the process know of it."""
        if self.job.fills and SCENARIOS[self.job.scenario].artefact:
            kind, own = ArtefactCase, {}
        return kind(
            self.workload,
            case,
            self.proof,
            scenario=self.job.scenario,
            folder=self.job.cache_folder,
            topology=self.topology,
            expected=ref.fingerprint,
            programs=self.job.programs,
            extra_ns=ref.extra_ns,
            turns=self.work.turns(ref.extra_ns) if self.work else {},
            **own,
        )

    def finish(self, run: CaseRun) -> None:
        """Send the record of a case, calibrated by the loops of its own visits."""
        assert isinstance(run.measured, StagedCase)
        run.finish({LOOP: min(run.measured.loop_ns, default=0.0)})


class PassSession(StagedSession):
    """A process that builds its cases pass by pass, and the reference program beside them.

    Then it calls their programs in one stretch. A processor that was idle, or compiled, hands work
    to another thread slowly for some tenths of a second: what a loop of calls takes is seen later.
    """

    def measured(self, ref: JobCase, case: Case) -> StagedCase:
        """Return a case that is visited pass by pass."""
        return self.staged(StagedCase, ref, case)

    def runs(self) -> dict[str, CaseRun]:
        """Return the reference program, and the cases."""
        self.reference = StagedCase(
            Reference, Case(), self.proof, topology=self.topology, is_reference=True
        )
        return {REFERENCE: CaseRun(self, None, self.reference), **super().runs()}

    def _visit(self, runs: dict[str, CaseRun]) -> None:
        """Also count Python's calls and hash the inputs, in the first process of a group.

        All would find the same.

        And compile once more to see the inside of it, where that is asked for. Last, because it
        slows down what follows.
        """
        passes, seed = self.job.passes, self.job.seed
        for number, key in visits(list(runs), passes, seed):
            if not runs[key].over:
                runs[key].visit(number)
        self._call(runs, passes, seed)
        for run in runs.values():  # the reference program is the first
            if run.record is None:
                self.finish(run)
        staged = [(run, run.measured) for run in runs.values() if run.ref]
        cases = [(run, case) for run, case in staged if isinstance(case, StagedCase)]
        for run, case in cases if self.job.process == 0 else ():
            run.add("inputs", case.inputs)
            run.add("facts", case.count)
        if self.job.inside:
            from harness.stages.inside import open_up  # what no process needs to be ready

            for run, case in cases:
                if (prepared := case.prepared) is not None:
                    run.add("compile_times", functools.partial(open_up, prepared))

    def _call(self, runs: Mapping[str, CaseRun], passes: int, seed: int) -> None:
        """Call all programs in one stretch: until the pool is awake, as users do, on one thread."""
        numbers = itertools.count(passes)  # each has its own time limit

        def called() -> dict[str, StagedCase]:
            cases = {key: run.measured for key, run in runs.items() if not run.over}
            staged = {key: one for key, one in cases.items() if isinstance(one, StagedCase)}
            return {key: one for key, one in staged.items() if one.built is not None}

        for key, case in called().items():
            runs[key].take(next(numbers), case.make_ready)
        awake = _clock() + AWAKE_S * 1e9
        while (cases := called()) and _clock() < awake:
            for key, case in cases.items():
                warm = functools.partial(case.warm, AWAKE_S / len(cases))
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

    def finish(self, run: CaseRun) -> None:
        """Send the record of a case; with the reference program's, that of the process itself."""
        reference_ns = values_ns(self.reference.stages())
        if run.ref is None and self.process_ns is not None:
            taken = {stage: StageSamples([float(ns)]) for stage, ns in self.process_ns.items()}
            about: dict[str, Any] = {"workload": "process", "version": str(METHOD_VERSION)}
            about |= {"static": [], "axes": {}, "transform": "forward", "status": "ok"}
            about |= {"stages": taken, "reference_ns": reference_ns}
            self.send(Done(self.record(self.job.process_key, **about)))
        run.finish(reference_ns)


class FirstCallSession(StagedSession):
    """A process that has woken a back end, and does nothing before the first call."""

    def measure(self) -> None:
        """Take the first call of the job's case; nothing else is built, none of memory frozen."""
        self.greet()
        began = _clock()
        for run in self.runs().values():
            run.visit(0)
            if run.record is None:
                self.finish(run)
        self.send(Bye(self.timed_ns, _clock() - began))

    def measured(self, ref: JobCase, case: Case) -> StagedCase:
        """Return the case that is called."""
        return self.staged(FirstCallCase, ref, case, spawned_ns=channel.spawned_ns())
