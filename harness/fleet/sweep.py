"""Drive a sweep over the workers of a pool: who measures what next, and what comes back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import queue
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field

import msgspec

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.job import Job, JobCase, unmeasured
from harness.engine.state import Outcome, Progress
from harness.errors import FleetError
from harness.fleet import remote
from harness.fleet.place import Place
from harness.fleet.pool import Pool, gone, said
from harness.fleet.remote import Order
from harness.fleet.tasks import Key, Task, Team, keys
from harness.fleet.workers import Worker, Workers
from harness.records.schema import Record, decode

LOOK_S = 1.0
"""How often the list of workers is looked at."""

TICK_S = 0.5

WAIT_S = 5.0
"""How long a sweep waits at first for workers that are not there yet."""

HOPE_S = 30.0
"""How long a sweep whose remaining work no worker can take waits for one, at least."""

LOSSES = 3
"""A job that was lost this often is not sent again."""

MISSES = 100
"""How many orders for a worker may land elsewhere, where workers cannot be chosen."""

MISSED_S = 0.05
"""How long one that did waits until it is sent again: another worker may be free then."""


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
    """An order that is on its way."""

    task: Task
    job: Job
    worker: Worker
    team: Team
    devices: list[str]
    future: Future[bytes] | None = None

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool) -> None:
        """Store a record."""
        state, group = self.team.state, self.team.groups[self.task.name]
        state.keep(record, group, ref, self.job.process, hopeless)


@dataclass(eq=False)
class _Sweep:
    """One thread drives; others, which wait for workers, leave it events: what it is to call."""

    pool: Pool
    workloads: Sequence[type[Workload]]
    context: Context
    options: Options
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]
    each_machine: bool
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """By order."""
    waiting: list[Task] = field(default_factory=list)
    planned: set[Team] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    looked_s: float = 0.0

    def __post_init__(self) -> None:
        self.outcome = Outcome()
        self.events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.counter = itertools.count(1)
        asked = self.pool, self.workloads, self.context, self.options, self.outcome
        self.workers = Workers(*asked, self._on_progress, self.on_note, self.events)

    def run(self, wait_s: float) -> Outcome:
        self.workers.gather(wait_s)
        try:
            self._drive(max(HOPE_S, wait_s))
        except BaseException:  # Ctrl-C included: workers must not go on measuring
            attempts = self.attempts.values()
            self.pool.stop(self.workers.name.name, [each.worker.address for each in attempts])
            for future in (attempt.future for attempt in attempts):
                if future:
                    future.cancel()
            raise
        # What attempts that came to nothing had finished; and what is stored is forgotten there.
        with contextlib.suppress(FleetError):
            self.workers.fetch([a for a, worker in self.workers.there.items() if worker.place])
        for team in self.planned:
            team.state.close()
        return self.outcome

    def _drive(self, hope_s: float) -> None:
        busy_s = time.monotonic()
        while True:
            self._plan()
            self._assign()
            # Whoever is being asked may do what waits, and with each_machine all of it once more.
            asking = self.workers.asking and (self.waiting or self.each_machine)
            if self.attempts or asking:
                busy_s = time.monotonic()
            elif not self.waiting:
                return
            elif time.monotonic() - busy_s > hope_s:
                targets = sorted({task.target for task in self.waiting})
                raise FleetError(
                    f"{len(self.waiting)} group(s) of cases on {', '.join(targets)} are not done, "
                    f"and for {hope_s:.0f} s no worker of {self.pool.name} could take any of them. "
                    "What arrived is stored. Start workers again and run the same command: it "
                    "resumes."
                )
            with contextlib.suppress(queue.Empty):
                self.events.get(timeout=TICK_S)()
            if time.monotonic() - self.looked_s > LOOK_S:
                self._look()

    def _look(self) -> None:
        self.looked_s = time.monotonic()
        for worker in self.workers.look():
            if worker.order:
                self._on_lost(self._end(worker.order), "the worker was lost")
        there = set[Key]()
        for worker in self.workers.there.values():
            if worker.place:
                there |= keys(worker.teams.values(), worker.place.host)
        for task in self.waiting:
            task.release_if_left(there)

    def _plan(self) -> None:
        """Divide the work among the teams that have come since this was last done."""
        for team in self.workers.teams.values():
            if team in self.planned:
                continue
            self.planned.add(team)
            skipped = {group.name for group, *_ in team.state.plan.skipped}
            team.state.note_skipped(() if self.each_machine else self.groups)
            for name in team.groups:
                if self.each_machine or name not in self.groups:
                    task = Task(name, team.target, next(self.counter), fixed=self.each_machine)
                    task.team = team if self.each_machine else self._beginner(name, team.target)
                    self.waiting.append(task)
            self.groups |= {*skipped, *team.groups}

    def _beginner(self, group: str, target: str) -> Team | None:
        """Return the team that has begun a group in an earlier sweep: it goes on with it."""
        teams = [team for team in self.workers.teams.values() if team.target == target]
        team = max(teams, key=lambda team: team.begun(group))
        return team if team.begun(group) else None

    def _assign(self) -> None:
        """Give every worker that is free something to measure."""
        busy = {device for attempt in self.attempts.values() for device in attempt.devices}
        free = [worker for worker in self.workers.there.values() if not worker.order]
        for worker in sorted(free, key=lambda worker: worker.turn):
            attempt = worker.place and self._begin(worker, worker.place, busy)
            if attempt:
                self._send(attempt)
                busy.update(attempt.devices)

    def _begin(self, worker: Worker, place: Place, busy: set[str]) -> Attempt | None:
        """Return the next job that a worker may have: the earliest process of all tasks."""
        teams = [t for t in worker.teams.values() if busy.isdisjoint(place.devices(t.target))]
        allowed = keys(teams, place.host)
        while True:
            tasks = [task for task in self.waiting if task.key in allowed]
            if not tasks:
                return None
            task = min(tasks, key=lambda task: (task.process, task.number))
            self.waiting.remove(task)
            team = worker.teams[task.target]
            job = task.begin(team, place.host)
            if job:
                return Attempt(task, job, worker, team, place.devices(task.target))

    def _send(self, attempt: Attempt) -> None:
        worker = attempt.worker
        # Another client's order for the same cases may wait there to take the last ones over.
        done = dict([*worker.stored.items()][:-1])
        worker.order = uuid.uuid4().hex[:16]
        worker.turn = next(self.counter)
        order = Order(
            id=worker.order,
            owner=self.workers.owner,
            sweep=self.workers.name.name,
            job=attempt.job,
            identity=attempt.team.state.plan.context.host.identity,
            devices=attempt.devices,
            stored=done,
            fresh=self.options.fresh,
        )
        worker.stored = {id: size for id, size in worker.stored.items() if id not in done}
        self.attempts[order.id] = attempt
        try:
            sent = self.pool.submit(msgspec.json.encode(order), worker.address, attempt.task.target)
        except Exception as error:  # an executor of somebody's may raise anything
            raise gone(self.pool, said(error)) from error
        attempt.future = sent
        sent.add_done_callback(
            lambda future: self.events.put(functools.partial(self._on_done, order.id, future))
        )

    # What comes back

    def _on_done(self, order: str, future: Future[bytes]) -> None:
        if order not in self.attempts:
            return  # its worker was lost before
        try:
            result = remote.decode_result(future.result())
        except BrokenExecutor as error:
            raise gone(self.pool, said(error)) from error
        except Exception as error:  # of Dask's, or of whoever's executor it is
            self._look()  # raises where it is the pool that is gone
            if order in self.attempts:
                self._on_lost(self._end(order), said(error))
            return
        attempt = self._end(order)
        refs = {ref.key: ref for ref in attempt.job.cases}
        for record in map(decode, result.records.splitlines()):
            if isinstance(record, Record):
                attempt.keep(record, refs.get(record.key), record.key in result.hopeless)
        self.outcome.timed_ns += result.timed_ns
        self.outcome.wall_ns += result.wall_ns
        worker, task = attempt.worker, attempt.task
        if result.kept_bytes:
            worker.stored[order] = result.kept_bytes
        if not result.refused:
            task.advance()
        elif result.elsewhere and not self.pool.chooses and worker.misses < MISSES:
            worker.misses += 1
            time.sleep(MISSED_S)
        else:
            task.put_back(f"{worker.label}: {result.refused}")
            was = "is not what it said" if result.elsewhere else "cannot go on"
            self.workers.refuse(worker, f"{was}: {result.refused}")

    def _end(self, order: str) -> Attempt:
        """Free the worker, and let the task wait for its next turn."""
        attempt = self.attempts.pop(order)
        attempt.worker.order = ""
        self.waiting.append(attempt.task)
        return attempt

    def _on_lost(self, attempt: Attempt, why: str) -> None:
        """Put the work of an attempt that was lost back, or give up its cases."""
        if attempt.future:
            attempt.future.cancel()
        task, job, label = attempt.task, attempt.job, attempt.worker.label
        task.losses += 1
        task.put_back(f"{label}: {why}")
        given_up = task.losses == LOSSES
        self.on_note(
            f"{task.name}, process {job.process + 1}: {label}: {why}. "
            f"It is {'given up' if given_up else 'done again'}."
        )
        if given_up:
            reason = f"given up after {LOSSES} attempts; the last: {task.retries[-1]}"
            for ref in job.cases:
                retries = list(task.retries)
                record = unmeasured(job, ref, "failed", reason, retries=retries)
                attempt.keep(record, ref, hopeless=True)
            task.advance()

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
