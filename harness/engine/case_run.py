"""One case in a measuring process: its passes, and the record they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.declare.source import METHOD_VERSION
from harness.declare.transforms import NotApplicable
from harness.declare.workload import Case, WorkloadError
from harness.engine.board import REFERENCE, Visit
from harness.engine.session import Session
from harness.engine.unit import CaseRef, Done
from harness.program import kept, reading
from harness.program.facts import Facts
from harness.program.text import fingerprint
from harness.records.failure import failure
from harness.records.schema import StageSamples
from harness.stages import cached_pass as scenario_pass
from harness.stages import cold_pass as stages
from harness.stages import injection, preparing, reference
from harness.stages.registry import values_ns
from harness.stages.scenarios import registry as scenarios
from harness.stages.scenarios.cache_state import switched_off


class CaseRun:
    """The passes over one case in this process, and the record they become."""

    def __init__(self, session: Session, ref: CaseRef | None, workload: Any, case: Case) -> None:
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
            self._end("failed", failure(error))

    def _pass(self, pass_: int) -> None:
        index = self.ref.index if self.ref else REFERENCE
        session = self.session
        if self.prepared is None:
            session.board.write(Visit(index, pass_, "inputs"))
            self.prepared = preparing.prepare(self.workload, self.case, session.topology)
            if self.ref is not None and session.work is not None:
                self.prepared.turns = session.work.turns(self.ref.extra_ns)
        if self.ref is None:
            self.loop_ns.append(float(min(reference.time_loop() for _ in range(10))))
            session.timed_ns += 10 * self.loop_ns[-1]

        def announce(stage: str) -> None:
            session.board.write(Visit(index, pass_, stage))

        if self.scenario == "off":
            with switched_off():  # the reference, in a process that has a cache
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
        for stage in scenarios.stages_of(self.scenario):
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
            if not samples.samples_ns and not samples.refused and not samples.reason:
                samples.reason = scenarios.SCENARIOS[self.scenario].missing.get(stage, "")
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
