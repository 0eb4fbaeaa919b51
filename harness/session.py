"""Measure one unit inside its process: visits in random order, and the records they make."""

from __future__ import annotations

import gc
import os
import time
import traceback
from pathlib import Path
from typing import Any

import jax

from harness import environment, evidence, injection, reference, stages
from harness.board import Board, Visit
from harness.cache import scenario_pass, scenarios
from harness.program import kept, reading
from harness.program.facts import Facts
from harness.program.text import fingerprint
from harness.records import STAGES, Record, StageSamples, to_raw, values_ns
from harness.reference import Reference
from harness.sampling import visits
from harness.source import METHOD_VERSION
from harness.topologies import Topology, unusable
from harness.transforms import NotApplicable
from harness.unit import Bye, CaseRef, Done, Hello, Unit
from harness.workload import Case, WorkloadError, enumerate_cases

REASON_LENGTH = 2_000
"""Characters of an exception's text that a record keeps."""

_clock = time.perf_counter_ns


def describe(error: BaseException) -> str:
    """Return an exception's type and text, and the last line of the user's that it came from."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(__file__)
    theirs = [
        f for f in frames if not f.filename.startswith(ours) and "site-packages" not in f.filename
    ]
    place = f" (at {os.path.basename(theirs[-1].filename)}:{theirs[-1].lineno})" if theirs else ""
    if len(text) > REASON_LENGTH:
        text = text[:REASON_LENGTH] + " ..."
    return text + place


class Session:
    """The measuring of one unit: once-per-process costs first, then the visits in random order."""

    def __init__(
        self,
        unit: Unit,
        workload: Any,
        send: Any,
        board: Board,
        process_ns: dict[str, float],
        topology: Topology | None = None,
    ) -> None:
        self.unit = unit
        self.workload = workload
        self.send = send
        self.board = board
        self.process_ns = process_ns
        self.topology = topology
        self.x64 = jax.config.values["jax_enable_x64"]
        self.proof = evidence.Evidence()
        self.timed_ns = 0.0
        self.work: injection.Work | None = None
        self.ready_ns = time.monotonic_ns() - unit.spawned_ns
        self.process_ns["ready"] = self.ready_ns
        self.started_at_ms = time.time_ns() // 1_000_000
        self.load_average = list(os.getloadavg())

    def run(self) -> None:
        """Measure everything, and say goodbye."""
        self.environment = to_raw(self._environment())
        self.send(Hello(self.environment, self.load_average))
        self._first_program()
        gc.freeze()  # what the imports left need not be looked at again
        if any(ref.extra_ns for ref in self.unit.cases):
            self.work = injection.measure_work()

        began = _clock()
        known = list(enumerate_cases(self.workload, [self.unit.target]))
        runs: dict[int, CaseRun] = {-1: CaseRun(self, None, Reference, Case())}
        for ref in self.unit.cases:
            case = known[ref.index] if ref.index < len(known) else None
            if case is None or case.id != ref.id:
                self._fail(
                    ref,
                    f"case {ref.index} is {case.id if case else 'missing'} in the measuring "
                    f"process, {ref.id} outside: a sweep must not depend on the process",
                )
                continue
            runs[ref.index] = CaseRun(self, ref, self.workload, case)
        self._visit(runs)
        self.send(Bye(self.timed_ns, _clock() - began))

    def _visit(self, runs: dict[int, CaseRun]) -> None:
        # The reference goes first as well, so that a quick process is calibrated before it ends.
        order = visits(list(runs), self.unit.passes, self.unit.seed)
        last = {index: number for number, (_, index) in enumerate(order)}
        waiting: list[CaseRun] = []
        for number, (pass_, index) in enumerate(order):
            run = runs[index]
            if run.over:
                continue
            run.visit(pass_)
            if last[index] == number and not run.over:
                waiting.append(run)
            if runs[-1].passes or runs[-1].over:
                for done in waiting:
                    done.finish(runs[-1])
                waiting.clear()

    def _environment(self) -> dict[str, Any]:
        device = jax.devices()[0]
        kind, count = device.device_kind, jax.device_count()
        if self.topology is not None:
            device, count = self.topology.device, len(self.topology.devices)
            kind = f"{device.device_kind} (compile-only)"
        return {
            **self.unit.surroundings,
            "flags": environment.flags(),
            "device": kind,
            "devices": count,
            "platform": device.platform,
            "platform_version": device.client.platform_version,
            "x64": bool(self.x64),
        }

    def _first_program(self) -> None:
        """Compile one trivial program: what the first one of a process pays, kept by itself."""

        def first(x: Any) -> Any:
            return x + 1

        one = self.topology.one if self.topology else None
        traced = jax.jit(first).trace(jax.ShapeDtypeStruct((8,), "float32", sharding=one))
        with stages.gc_off():
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
        self.process_ns["first_lower"] = middle - begin
        self.process_ns["first_compile"] = end - middle

    def record(self, key: str, **fields: Any) -> Record:
        """Return a record with everything in it that the unit and the process know."""
        base = {
            **self.unit.base,
            "key": key,
            "environment": self.environment,
            "load_average": self.load_average,
            "started_at_ms": self.started_at_ms,
            **fields,
        }
        return Record(**base)

    def _fail(self, ref: CaseRef, reason: str) -> None:
        self.send(Done(self.record(ref.key, axes={}, transform="", status="failed", reason=reason)))


class CaseRun:
    """The passes over one case in this process, and the record they become."""

    def __init__(self, session: Session, ref: CaseRef | None, workload: Any, case: Any) -> None:
        self.session = session
        self.ref = ref
        self.workload = workload
        self.case = case
        self.scenario = session.unit.scenario if ref else "off"
        self.prepared: Any = None
        self.passes: list[Any] = []
        self.loop_ns: list[float] = []
        self.fingerprint = ""
        self.facts: Facts | None = None
        self.over = False

    def visit(self, pass_: int) -> None:
        """Make one pass; whatever the workload raises ends this case and no other."""
        try:
            self._pass(pass_)
        except NotApplicable as error:
            self._end("skipped", str(error))
        except WorkloadError as error:
            self._end("failed", str(error))
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            reason = describe(error)
            memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in reason
            self._end("failed", f"out of memory: {reason}" if memory else reason)

    def _pass(self, pass_: int) -> None:
        index = self.ref.index if self.ref else -1
        session = self.session
        if self.prepared is None:
            session.board.write(Visit(index, pass_, "inputs"))
            self.prepared = stages.prepare(self.workload, self.case, session.topology)
            if self.ref is not None and session.work is not None:
                self.prepared.turns = session.work.turns(self.ref.extra_ns)
        if self.ref is None:
            self.loop_ns.append(float(min(reference.time_loop() for _ in range(10))))
            session.timed_ns += 10 * self.loop_ns[-1]

        def announce(stage: str) -> None:
            session.board.write(Visit(index, pass_, stage))

        if self.scenario == "off":
            with scenarios.switched_off():  # the reference, in a process that has a cache
                taken = stages.cold_pass(self.prepared, session.proof, announce)
        else:
            taken = scenario_pass.cached_pass(
                self.prepared,
                session.proof,
                self.scenario,
                Path(session.unit.cache_folder),
                session.ready_ns,
                pass_,
                announce,
            )
        session.timed_ns += taken.timed_ns
        if not self.fingerprint or self.scenario == "warm":
            self.fingerprint = fingerprint(taken.compiled)
        if self.ref is not None and not self.passes and self.scenario in ("off", "cold"):
            self.facts = reading.read(taken.traced, taken.lowered, taken.compiled)
            if session.unit.programs:
                folder = Path(session.unit.programs)
                kept.keep(folder, self.fingerprint, taken.lowered, taken.compiled)
        wanted = self.ref.fingerprint if self.ref else ""
        if wanted and self.fingerprint != wanted:
            for stage in ("load", "first_call", "start"):
                taken.refuse(stage, "the cache answered with another program than was put into it")
        taken.forget()
        self.passes.append(taken)

    def values_ns(self) -> dict[str, float]:
        """Return the process's one value per stage, for calibration."""
        values = values_ns(self._stages())
        if self.loop_ns:
            values["loop"] = min(self.loop_ns)
        return values

    def _stages(self) -> dict[str, Any]:
        found = {}
        for stage in scenarios.STAGES.get(self.scenario, STAGES):
            samples = StageSamples()
            for taken in self.passes:
                samples.samples_ns += [round(ns, 1) for ns in taken.samples_ns.get(stage, ())]
                samples.number = taken.number.get(stage, samples.number)
                samples.reason = taken.missing.get(stage, samples.reason)
                if stage in taken.refused:
                    reason = taken.refused[stage]
                    samples.refused[reason] = samples.refused.get(reason, 0) + 1
            if stage == "trace" and self.case.transform == "pmap":
                samples.reason = stages.NO_PMAP_TRACE
            if self.scenario == "default" and not samples.samples_ns and not samples.refused:
                samples.reason = scenarios.MISSING_BY_DEFAULT.get(stage, "")
            found[stage] = samples
        return found

    def finish(self, reference_run: CaseRun) -> None:
        """Send the record of a case whose passes are all made."""
        found = self._stages()
        proven = any(samples.samples_ns for samples in found.values())
        if self.ref is None:
            found["loop"] = StageSamples(list(self.loop_ns))
            self._send_process()
        self._end(
            "ok" if proven else "refused",
            "" if proven else "; ".join(sorted({r for s in found.values() for r in s.refused})),
            stages=found,
            reference_ns=reference_run.values_ns(),
            fingerprint=injection.fingerprint(
                self.fingerprint, self.ref.extra_ns if self.ref else {}
            ),
            facts=self.facts,
            entry_bytes=max((taken.entry_bytes for taken in self.passes), default=0),
        )

    def _send_process(self) -> None:
        session = self.session
        record = session.record(
            session.unit.process_key,
            workload="process",
            version=str(METHOD_VERSION),
            static=[],
            axes={},
            transform="forward",
            status="ok",
            stages={stage: StageSamples([float(ns)]) for stage, ns in session.process_ns.items()},
            reference_ns=self.values_ns(),
        )
        session.send(Done(record))

    def _end(self, status: str, reason: str, **fields: Any) -> None:
        self.over = True
        session = self.session
        key = self.ref.key if self.ref else session.unit.reference_key
        if self.ref is None:
            fields |= {"workload": "reference", "version": str(METHOD_VERSION), "static": []}
        record = session.record(
            key,
            axes=dict(self.case.axes),
            transform=self.case.transform,
            precision=self.case.precision,
            status=status,
            reason=reason,
            **fields,
        )
        session.send(Done(record))
