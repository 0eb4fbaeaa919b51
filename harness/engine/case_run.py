"""One case in a measuring process: its passes, and the record they become."""

from __future__ import annotations

from typing import Any

from harness.declare.source import METHOD_VERSION
from harness.declare.transforms import NotApplicable
from harness.declare.workload import Case, WorkloadError
from harness.engine.board import REFERENCE, Visit
from harness.engine.session import Session
from harness.engine.unit import CaseRef, Done
from harness.records.failure import failure
from harness.records.schema import StageSamples
from harness.stages.staged_case import StagedCase


class CaseRun:
    """The passes over one case in this process, and the record they become."""

    def __init__(self, session: Session, ref: CaseRef | None, workload: Any, case: Case) -> None:
        self.session = session
        self.ref = ref
        self.case = case
        self.extra_ns = ref.extra_ns if ref else {}
        self.over = False
        unit = session.unit
        common: dict[str, Any] = {"ready_ns": session.ready_ns, "topology": session.topology}
        if ref is None:
            self.work = StagedCase(workload, case, session.proof, is_reference=True, **common)
        else:
            self.work = StagedCase(
                workload,
                case,
                session.proof,
                scenario=unit.scenario,
                folder=unit.cache_folder,
                expected=ref.fingerprint,
                programs=unit.programs,
                turns=session.work.turns(ref.extra_ns) if session.work else {},
                **common,
            )

    @property
    def passes(self) -> int:
        """How many there have been."""
        return self.work.passes

    def visit(self, pass_: int) -> None:
        """Make one pass; whatever the workload raises ends this case and no other."""
        index = self.ref.index if self.ref else REFERENCE

        def announce(stage: str) -> None:
            self.session.board.write(Visit(index, pass_, stage))

        try:
            self.session.timed_ns += self.work.visit(pass_, announce)
        except NotApplicable as error:
            self._end("skipped", str(error))
        except WorkloadError as error:
            self._end("failed", str(error))
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            self._end("failed", failure(error))

    def finish(self, reference_run: CaseRun) -> None:
        """Send the record of a case whose passes are all made."""
        found = self.work.stages()
        proven = any(samples.samples_ns for samples in found.values())
        if self.ref is None:
            self._send_process()
        self._end(
            "ok" if proven else "refused",
            "" if proven else "; ".join(sorted({r for s in found.values() for r in s.refused})),
            stages=found,
            reference_ns=reference_run.work.values_ns(),
            **self.work.fields(self.extra_ns),
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
            reference_ns=self.work.values_ns(),
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
