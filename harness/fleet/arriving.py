"""What comes back of a sweep over a fleet: records stored, failures counted, work put back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.engine.job import Job, JobCase, unmeasured
from harness.engine.state import Outcome
from harness.fleet.collecting import corrected
from harness.fleet.errand import Kept, Report
from harness.fleet.jobs import LOSSES, Task, Team
from harness.fleet.pool import Lost
from harness.fleet.roster import Roster, Worker
from harness.fleet.waiting import Waiting
from harness.records.schema import Record, decode


@dataclass(eq=False)
class Flight:
    """An errand that is on its way."""

    task: Task
    job: Job
    worker: Worker
    team: Team
    refs: dict[int, JobCase]
    seen: set[bytes] = field(default_factory=set)
    """The records that have come: each comes twice, at once and in the report."""

    @property
    def devices(self) -> list[str]:
        """What it has for itself."""
        return self.worker.place.devices(self.job.target)


class Arrivals:
    """Enters into the state what comes of the errands of a sweep."""

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
        worker, task = flight.worker, flight.task
        if report.spooled:
            worker.stored[report.errand] = report.spooled
        if report.lost:
            self._on_lost(flight, report.lost)
        elif report.refused:
            task.put_back(f"{worker.place.label}: {report.refused}")
            self.waiting.put(task)
            if report.elsewhere:
                self.roster.ask_again(worker.place.worker, report.refused)
            else:
                self.roster.refuse(worker.place.worker, f"cannot go on: {report.refused}")
        else:
            task.advance()
            self.waiting.put(task)

    def _on_lost(self, flight: Flight, why: str) -> None:
        """Put the work of an attempt that was lost back, or give up the cases that it lacks."""
        task, label = flight.task, flight.worker.place.label
        task.losses += 1
        process = flight.job.process
        if task.losses < LOSSES:
            self.on_note(f"{task.name}, process {process + 1}: {label}: {why}. It is done again.")
            task.put_back(f"{label}: {why}")
            self.waiting.put(task)
            return
        self.on_note(f"{task.name}, process {process + 1}: {label}: {why}. It is given up.")
        task.retries.append(f"{label}: {why}")
        replicate = flight.job.base["replicate"]
        group, state = flight.team.groups[task.name], flight.team.state
        for ref in flight.refs.values():
            if (ref.key, replicate) not in state.now:
                state.keep(self._failure(flight, ref), group, ref, process, hopeless=True)
        task.advance()  # cases that were through before it was lost have further processes
        self.waiting.put(task)

    def _failure(self, flight: Flight, ref: JobCase) -> Record:
        task = flight.task
        reason = f"given up after {task.losses} attempts; the last: {task.retries[-1]}"
        return unmeasured(flight.job, ref, "failed", reason, retries=list(task.retries))

    def _keep(self, flight: Flight, kept: Kept) -> None:
        if kept.line in flight.seen:
            return
        flight.seen.add(kept.line)
        record = decode(kept.line.rstrip(b"\n"))
        if isinstance(record, str):
            return
        record = corrected(record, flight.worker.offset_ms)
        ref = flight.refs.get(kept.index) if kept.index is not None else None
        group = flight.team.groups[flight.task.name]
        flight.team.state.keep(record, group, ref, flight.job.process, kept.hopeless)
