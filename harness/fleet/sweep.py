"""Drive a sweep over the workers of a pool: who measures what next, and what comes back."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import platform
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.job import Job, JobCase, unmeasured
from harness.engine.state import Outcome, Progress
from harness.errors import FleetError
from harness.fleet import spool
from harness.fleet.collection import corrected
from harness.fleet.messages import Assignment, RecordLine, Result
from harness.fleet.pool import Changed, Event, Gone, Lost, Pool
from harness.fleet.queue import LOSSES, Queue, Task, Team
from harness.fleet.workers import Worker, Workers
from harness.records.schema import decode

TICK_S = 0.5
SHORT_TICK_S = 0.05
"""While workers are asked what they are."""

WAIT_S = 5.0
"""How long a sweep waits at first for workers that are not there yet."""

HOPE_S = 30.0
"""How long a sweep whose remaining work no worker can take waits for one, at least."""


def sweep_on(
    pool: Pool,
    workloads: Sequence[type[Workload]],
    context: Context,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_note: Callable[[str], None] = lambda note: None,
    each_machine: bool = False,
    wait_s: float = WAIT_S,
) -> Outcome:
    """Measure every case of `workloads` on the workers of `pool`, and return what there is then.

    Args:
        pool: the workers.
        workloads: what to measure. The workers have the same source.
        context: of this machine: the results tree, the commit and the night; each record names
            the machine and the environment that measured it.
        options: how; `keep_programs` is not for fleets.
        on_progress: called whenever a record arrives.
        on_note: called with what a user should know: workers that are not used, and why.
        each_machine: measure every case on every machine that can, and not once.
        wait_s: how many seconds to wait for workers where none can measure, at first, and if that
            is longer than :data:`HOPE_S`, later.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        FleetError: no worker can do what is left; what arrived is stored.
        StoreError: the results folder cannot take records; those before are kept.
    """
    for workload in workloads:
        check(workload)
    return _Sweep(pool, workloads, context, options, on_progress, on_note, each_machine).run(wait_s)


@dataclass(eq=False)
class Attempt:
    """An assignment that is on its way."""

    task: Task
    job: Job
    worker: Worker
    team: Team
    refs: dict[int, JobCase]
    seen: set[bytes] = field(default_factory=set)
    """The records that have come: each comes twice, at once and in the result."""

    @property
    def devices(self) -> list[str]:
        """What it has for itself."""
        return self.worker.place.devices(self.job.target)


class _Sweep:
    def __init__(
        self,
        pool: Pool,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        on_progress: Callable[[Progress], None],
        on_note: Callable[[str], None],
        each_machine: bool,
    ) -> None:
        self.pool = pool
        self.options = options
        self.on_progress = on_progress
        self.on_note = on_note
        self.each_machine = each_machine
        self.owner = spool.owner_of(context.results, platform.node())
        self.outcome = Outcome()
        self.workers = Workers(
            pool,
            workloads,
            context,
            options,
            self.owner,
            self.outcome,
            self._on_progress,
            on_note,
        )
        self.queue = Queue()
        self.attempts: dict[str, Attempt] = {}
        self.turns = itertools.count(1)
        self.planned: set[Team] = set()
        self.groups: set[str] = set()

    def run(self, wait_s: float) -> Outcome:
        self.workers.gather(wait_s)
        try:
            self._drive(max(HOPE_S, wait_s))
        except BaseException:  # Ctrl-C included: workers must not go on measuring
            self.pool.stop(self.workers.name.name)
            raise
        finally:
            stored = {address: one.stored for address, one in self.workers.there.items()}
            with contextlib.suppress(Exception):  # it is gone: the next sweep finds what it has
                self.pool.forget(self.owner, stored)
        self.workers.collect()  # what attempts that came to nothing had finished
        for team in self.planned:
            team.state.close()
        return self.outcome

    def _plan(self) -> None:
        """Divide the work among the teams that have come since this was last done."""
        for team in self.workers.teams.values():
            if team in self.planned:
                continue
            self.planned.add(team)
            skipped = {group.name for group, *_ in team.state.plan.skipped}
            team.state.note_skipped(() if self.each_machine else self.groups)
            for name in team.groups:
                if self.each_machine:
                    self.queue.put(Task(name, team.target, team, fixed=True))
                elif name not in self.groups:
                    self.queue.put(Task(name, team.target, self._beginner(name, team)))
            self.groups |= {*skipped, *team.groups}

    def _beginner(self, group: str, first: Team) -> Team | None:
        """Return the team that has begun a group in an earlier sweep: it goes on with it."""
        teams = [team for team in self.workers.teams.values() if team.target == first.target]
        team = max(teams, key=lambda team: team.begun(group))
        return team if team.begun(group) else None

    def _drive(self, hope_s: float) -> None:
        busy_s = time.monotonic()
        while True:
            self._plan()
            self._assign()
            # Whoever is being asked may do what waits, and with each_machine all of it once more.
            asking = self.workers.asking and (self.queue or self.each_machine)
            if self.attempts or asking:
                busy_s = time.monotonic()
            elif not self.queue:
                return
            elif time.monotonic() - busy_s > hope_s:
                raise FleetError(
                    f"{len(self.queue)} group(s) of cases on {', '.join(self.queue.targets)} are "
                    f"not done, and for {hope_s:.0f} s no worker of {self.pool.name} could take "
                    "any of them. What arrived is stored. Start workers again and run the same "
                    "command: it resumes."
                )
            for event in self.pool.next_events(SHORT_TICK_S if self.workers.asking else TICK_S):
                self._on(event)
            self.workers.take_in()
            self.queue.look_for(
                {
                    (team, worker.place.host)
                    for worker in self.workers.there.values()
                    for team in worker.teams.values()
                }
            )

    def _assign(self) -> None:
        """Give every worker that is free something to measure."""
        busy = {device for attempt in self.attempts.values() for device in attempt.devices}
        free = [worker for worker in self.workers.there.values() if not worker.assignment]
        for worker in sorted(free, key=lambda worker: worker.turn):
            place = worker.place
            teams = [t for t in worker.teams.values() if busy.isdisjoint(place.devices(t.target))]
            while task := self.queue.take(teams, place.host):
                team = worker.teams[task.target]
                job = task.begin(team, place.host, self.options.effort.limit)
                if job:
                    self._send(task, job, worker, team)
                    busy.update(place.devices(task.target))
                    break

    def _send(self, task: Task, job: Job, worker: Worker, team: Team) -> None:
        # Another client's assignment for the same cases may wait there to take the last ones over.
        *done, _ = [*worker.stored.items()] or [("", 0)]
        assignment = Assignment(
            id=uuid.uuid4().hex[:16],
            owner=self.owner,
            sweep=self.workers.name.name,
            job=job,
            # Many times what the job itself is, and nothing that the worker asks for.
            expected=msgspec.structs.replace(worker.place, workloads={}, hardware={}, lacking={}),
            devices=worker.place.devices(task.target),
            stored=dict(done),
            fresh=self.options.fresh,
        )
        for name, _ in done:
            del worker.stored[name]
        worker.assignment = assignment.id
        worker.turn = next(self.turns)
        refs = {ref.index: ref for ref in job.cases}
        self.attempts[assignment.id] = Attempt(task, job, worker, team, refs)
        self.pool.send(assignment, worker.place)

    # What comes back

    def _on(self, event: Event) -> None:
        if isinstance(event, Gone):
            raise FleetError(event.text(self.pool.name))
        if isinstance(event, Changed):
            self.workers.look()
            return
        attempt = self.attempts.get(event.assignment)
        if attempt is None:
            return  # it was given up
        if isinstance(event, RecordLine):
            self._keep(attempt, event)
            return
        del self.attempts[event.assignment]
        attempt.worker.assignment = ""
        if isinstance(event, Lost):
            self._on_lost(attempt, event.why)
        else:
            self._on_result(attempt, event)

    def _on_result(self, attempt: Attempt, result: Result) -> None:
        for line in result.lines:
            self._keep(attempt, line)
        self.outcome.timed_ns += result.timed_ns
        self.outcome.wall_ns += result.wall_ns
        worker, task = attempt.worker, attempt.task
        address, label = worker.place.worker, worker.place.label
        if result.spooled:
            worker.stored[result.assignment] = result.spooled
        if result.lost:
            self._on_lost(attempt, result.lost)
        elif result.refused:
            task.put_back(f"{label}: {result.refused}")
            self.queue.put(task)
            if result.elsewhere:
                self.workers.ask_again(address, result.refused)
            else:
                self.workers.refuse(address, f"cannot go on: {result.refused}")
        else:
            task.advance()
            self.queue.put(task)

    def _on_lost(self, attempt: Attempt, why: str) -> None:
        """Put the work of an attempt that was lost back, or give up the cases that it lacks."""
        task, job, state = attempt.task, attempt.job, attempt.team.state
        label = attempt.worker.place.label
        what = f"{task.name}, process {job.process + 1}: {label}: {why}."
        task.losses += 1
        if task.losses < LOSSES:
            self.on_note(f"{what} It is done again.")
            task.put_back(f"{label}: {why}")
            self.queue.put(task)
            return
        self.on_note(f"{what} It is given up.")
        task.retries.append(f"{label}: {why}")
        reason = f"given up after {task.losses} attempts; the last: {task.retries[-1]}"
        group = attempt.team.groups[task.name]
        for ref in attempt.refs.values():
            if (ref.key, job.base["replicate"]) not in state.now:
                record = unmeasured(job, ref, "failed", reason, retries=list(task.retries))
                state.keep(record, group, ref, job.process, hopeless=True)
        task.advance()  # cases that were through before it was lost have further processes
        self.queue.put(task)

    def _keep(self, attempt: Attempt, line: RecordLine) -> None:
        if line.line in attempt.seen:
            return
        attempt.seen.add(line.line)
        record = decode(line.line.rstrip(b"\n"))
        if isinstance(record, str):
            return
        record = corrected(record, attempt.worker.offset_ms)
        ref = attempt.refs.get(line.index) if line.index is not None else None
        group = attempt.team.groups[attempt.task.name]
        attempt.team.state.keep(record, group, ref, attempt.job.process, line.hopeless)

    def _on_progress(self, progress: Progress) -> None:
        machine = progress.record.machine if progress.record else ""
        totals: dict[str, list[int]] = {}
        for team in self.workers.teams.values():
            totals.setdefault(team.target, []).append(team.state.total)
        done = sum(team.state.done for team in self.workers.teams.values())
        total = sum(sum(each) if self.each_machine else max(each) for each in totals.values())
        self.on_progress(
            dataclasses.replace(progress, done=min(done, total), total=total, machine=machine)
        )
