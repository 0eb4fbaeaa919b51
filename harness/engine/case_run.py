"""One case in a measuring process: visited pass by pass, and made a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.declare.source import METHOD_VERSION
from harness.declare.transforms import NotApplicable
from harness.declare.workload import WorkloadError
from harness.engine.job import Done, JobCase
from harness.engine.visit import REFERENCE, Visit
from harness.records.failure import failure
from harness.records.schema import Record
from harness.sides.side import Unavailable

if TYPE_CHECKING:
    from harness.engine.session import Session
    from harness.sides.compared_case import ComparedCase
    from harness.stages.first_call_case import FirstCallCase
    from harness.stages.staged_case import StagedCase

    MeasuredCase = StagedCase | FirstCallCase | ComparedCase


@dataclass(eq=False)
class CaseRun:
    """The passes over one case in this process, and the record they become."""

    session: Session
    ref: JobCase | None
    """None for the reference program."""
    measured: MeasuredCase
    passes: int = 0
    over: bool = False
    record: Record | None = None
    """What was sent."""

    def visit(self, number: int) -> None:
        """Make one pass; whatever the workload raises ends this case and no other."""
        try:
            self.session.timed_ns += self.measured.visit(number, self._announcing(number))
            self.passes += 1
        except (NotApplicable, Unavailable) as error:
            self._end("skipped", str(error))
        except WorkloadError as error:
            self._end("failed", str(error))
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            self._end("failed", failure(error, self.measured.who))

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
        """Send the record of a case whose passes are all made."""
        stages = self.measured.stages()
        fields = {"reference_ns": reference_ns, **self.measured.fields(), "stages": stages}
        if any(samples.samples_ns for samples in stages.values()):
            self._end("ok", "", **fields)
        else:
            reasons = {reason for samples in stages.values() for reason in samples.refused}
            self._end("refused", "; ".join(sorted(reasons)), **fields)

    def _end(self, status: str, reason: str, **fields: Any) -> None:
        self.over = True
        case, session = self.measured.case, self.session
        key = self.ref.key if self.ref else session.job.reference_key
        if self.ref is None:
            fields |= {"workload": "reference", "version": str(METHOD_VERSION), "static": []}
        self.record = session.record(
            key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=self.measured.comparison,
            status=status,
            reason=reason,
            **fields,
        )
        session.send(Done(self.record))
