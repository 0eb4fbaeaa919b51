"""One measuring process: how it measures a case, and the records that it sends.

:func:`measure` is the one road. How cases are made and visited is a strategy:
:mod:`harness.measure.staged` builds and calls them, :mod:`harness.measure.compared` takes a side.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import jax
import psutil

from harness.baselines.side import Unavailable
from harness.measure import machine_load
from harness.measure.job import (
    REFERENCE,
    BeforeCalls,
    Bye,
    CurrentVisit,
    Done,
    Hello,
    Job,
    JobCase,
    Message,
    Visit,
)
from harness.records.failure import failure
from harness.records.schema import Record, to_raw
from harness.stages.sampling import visits
from harness.workload.code import LoadedCode
from harness.workload.source import METHOD_VERSION
from harness.workload.transforms import NotApplicable
from harness.workload.workload import Case, Workload, WorkloadError, enumerate_cases

if TYPE_CHECKING:  # a process has one or the other
    from harness.baselines.compared_case import ComparedCase
    from harness.stages.staged_case import StagedCase

Send = Callable[[Message], None]


@dataclass(eq=False)
class CaseRun:
    """The passes over one case in this process, and the record they become."""

    session: Session
    ref: JobCase | None
    """None for the reference program."""
    measured: StagedCase | ComparedCase
    """The case as it is visited: in stages, or on a side of a comparison."""
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

    def take(self, number: int, measure: Callable[[Callable[[str], None]], None]) -> bool:
        """Measure something; whatever the workload raises ends this case and no other.

        `measure` gets a function that it calls with each stage before that begins. Returns whether
        it ended well.
        """
        try:
            measure(self._announcing(number))
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
            value = find(self._announcing(self.passes))
        except (Exception, SystemExit):  # a user's function may raise anything; its times stand
            return
        if value is not None:
            setattr(self.record, field, value)
            self.session.send(Done(self.record))

    def _announcing(self, number: int) -> Callable[[str], None]:
        key = self.ref.key if self.ref else REFERENCE

        def announce(stage: str) -> None:
            self.session.current.write(Visit(key, number, stage))

        return announce

    def send_built(self, reference_ns: dict[str, float]) -> None:
        """Send what was taken so far: a call may end the process."""
        fields = {**self.measured.fields(), "stages": self.measured.stages()}
        record = self._record("failed", "", reference_ns=reference_ns, **fields)
        self.session.send(BeforeCalls(record))

    def finish(self, reference_ns: dict[str, float]) -> None:
        """Send the record of a case; of one that failed, with the stages that were taken before."""
        stages = self.measured.stages()
        taken = any(samples.samples_ns for samples in stages.values())
        if self.failed and not (taken and self.measured.in_parts):
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
        self.record = self._record(status, reason, **fields)
        self.session.send(Done(self.record))

    def _record(self, status: str, reason: str, **fields: Any) -> Record:
        case, session = self.measured.case, self.session
        key = self.ref.key if self.ref else session.job.reference_key
        if self.ref is None:
            fields |= {"workload": "reference", "version": str(METHOD_VERSION), "static": []}
        about = {"axes": dict(case.axes), "transform": case.transform, "precision": case.precision}
        outcome = {"comparison": self.measured.comparison, "status": status, "reason": reason}
        return session.record(key, **about, **outcome, **fields)


@dataclass(eq=False)
class Session:
    """One process that measures one job."""

    job: Job
    workload: type[Workload]
    send: Send
    current: CurrentVisit
    code: LoadedCode
    _: KW_ONLY
    about: Mapping[str, Any]
    """What the process found out about its flags and its device."""

    def __post_init__(self) -> None:
        job = self.job
        self.started_at_ms = time.time_ns() // 1_000_000
        self.load_average = list(psutil.getloadavg())
        self.others = machine_load.Others(machine_load.process_s)
        x64 = bool(jax.config.values["jax_enable_x64"])
        self.environment = to_raw({**job.surroundings, "x64": x64, **self.about})
        # Said before anything is measured: for the record of a case that kills the process.
        self.send(Hello(self.environment, self.load_average, job.base.get("contained", [])))

    def cases(self) -> Iterator[tuple[JobCase, Case]]:
        """Yield the job's cases; for those that this process does not know it sends a record."""
        declared = dict(enumerate(enumerate_cases(self.workload, [self.job.target])))
        for ref in self.job.cases:
            case = declared.get(ref.index)
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
        of_process: dict[str, Any] = {"environment": self.environment}
        of_process |= {"load_average": self.load_average, "started_at_ms": self.started_at_ms}
        of_process |= {"others_cores": round(self.others.cores(), 3)}
        of_process |= {"code": self.code.entries(self.job.project, self.workload.depends_on)}
        of_process |= {"comparison": self.job.comparison}
        return Record(**{**self.job.base, "key": key, **of_process, **fields})


Runs = dict[str, CaseRun]
"""What is visited, by the key of the case."""


def measure(
    session: Session,
    made: Callable[[JobCase, Case], StagedCase | ComparedCase],
    visited: Callable[[Session, Runs], None],
) -> None:
    """Measure every case of a job.

    Args:
        session: the process.
        made: returns a case as it is visited.
        visited: measures the cases, and finishes each.
    """
    cases = session.cases()
    visited(session, {ref.key: CaseRun(session, ref, made(ref, case)) for ref, case in cases})
    session.send(Bye())


def pass_by_pass(session: Session, runs: Runs) -> None:
    """Visit cases in random order, pass by pass, and finish each after its last."""
    passes = session.job.passes
    for number, key in visits(list(runs), passes, session.job.seed):
        run = runs[key]
        if not run.over:
            run.visit(number)
        if run.record is None and (run.over or run.passes == passes):
            run.finish({})
