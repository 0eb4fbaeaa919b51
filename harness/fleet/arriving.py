"""What comes back of a sweep over a fleet: records stored, failures counted, work put back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.engine.books import Outcome
from harness.engine.order import Order
from harness.engine.unit import CaseRef
from harness.fleet.collecting import corrected
from harness.fleet.errand import Kept, Report
from harness.fleet.jobs import LOSSES, Job, Team
from harness.fleet.pool import Lost
from harness.fleet.roster import Roster, Worker
from harness.fleet.waiting import Waiting
from harness.records.schema import Record, decode, to_raw


@dataclass(eq=False)
class Flight:
    """An errand that is on its way."""

    job: Job
    order: Order
    worker: Worker
    team: Team
    refs: dict[int, CaseRef]
    seen: set[bytes] = field(default_factory=set)
    """The records that have come: each comes twice, at once and in the report."""

    @property
    def devices(self) -> list[str]:
        """What it has for itself."""
        return self.worker.place.devices(self.order.unit.target)


class Arrivals:
    """Enters into the books what comes of the errands of a sweep."""

    def __init__(
        self,
        roster: Roster,
        waiting: Waiting,
        outcome: Outcome,
        on_note: Callable[[str], None],
    ) -> None:
        self.roster = roster
        self.waiting = waiting
        self.outcome = outcome
        self.on_note = on_note
        self.flights: dict[str, Flight] = {}

    def on(self, event: Kept | Report | Lost) -> None:
        """Take in what came of an errand; nothing of one that was given up."""
        flight = self.flights.get(event.errand)
        if flight is None:
            return
        if isinstance(event, Kept):
            self._keep(flight, event)
            return
        del self.flights[event.errand]
        flight.worker.errand = ""
        if isinstance(event, Lost):
            self._on_lost(flight, event.why)
        else:
            self._on_report(flight, event)

    def _on_report(self, flight: Flight, report: Report) -> None:
        for kept in report.kept:
            self._keep(flight, kept)
        self.outcome.timed_ns += report.timed_ns
        self.outcome.wall_ns += report.wall_ns
        worker, job = flight.worker, flight.job
        if report.spooled:
            worker.stored[report.errand] = report.spooled
        if report.lost:
            self._on_lost(flight, report.lost)
        elif report.refused:
            job.put_back(f"{worker.place.label}: {report.refused}")
            self.waiting.put(job)
            if report.elsewhere:
                self.roster.ask_again(worker.place.worker, report.refused)
            else:
                self.roster.refuse(worker.place.worker, f"cannot go on: {report.refused}")
        else:
            job.advance()
            self.waiting.put(job)

    def _on_lost(self, flight: Flight, why: str) -> None:
        """Put the work of an attempt that was lost back, or give up the cases that it lacks."""
        job, label = flight.job, flight.worker.place.label
        job.losses += 1
        process = flight.order.process
        if job.losses < LOSSES:
            self.on_note(f"{job.name}, process {process + 1}: {label}: {why}. It is done again.")
            job.put_back(f"{label}: {why}")
            self.waiting.put(job)
            return
        self.on_note(f"{job.name}, process {process + 1}: {label}: {why}. It is given up.")
        job.retries.append(f"{label}: {why}")
        replicate = flight.order.unit.base["replicate"]
        share, books = flight.team.shares[job.name], flight.team.books
        for ref in flight.refs.values():
            if (ref.key, replicate) not in books.now:
                books.keep(self._failure(flight, ref), share, ref, process, hopeless=True)
        job.advance()  # cases that were through before it was lost have further processes
        self.waiting.put(job)

    def _failure(self, flight: Flight, ref: CaseRef) -> Record:
        case, job = flight.order.cases[ref.index], flight.job
        return Record(
            **{**flight.order.unit.base, "retries": list(job.retries)},
            key=ref.key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=flight.order.comparison,
            status="failed",
            reason=f"given up after {job.losses} attempts; the last: {job.retries[-1]}",
            started_at_ms=time.time_ns() // 1_000_000,
            environment=to_raw({}),
        )

    def _keep(self, flight: Flight, kept: Kept) -> None:
        if kept.line in flight.seen:
            return
        flight.seen.add(kept.line)
        record = decode(kept.line.rstrip(b"\n"))
        if isinstance(record, str):
            return
        record = corrected(record, flight.worker.offset_ms)
        ref = flight.refs.get(kept.index) if kept.index is not None else None
        share = flight.team.shares[flight.job.name]
        flight.team.books.keep(record, share, ref, flight.order.process, kept.hopeless)
