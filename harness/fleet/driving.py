"""Drive a sweep over the workers of a pool: who measures what next."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import platform
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import msgspec

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.job import Job
from harness.engine.state import Outcome, Progress
from harness.engine.sweep import Driver
from harness.errors import FleetError
from harness.fleet import pools, spool
from harness.fleet.arriving import Arrivals, Flight
from harness.fleet.errand import Errand
from harness.fleet.jobs import Task, Team
from harness.fleet.pool import Changed, Event, Gone, Pool
from harness.fleet.roster import Roster, Worker
from harness.fleet.waiting import Waiting

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


def on_executor(executor: Executor, each_machine: bool, on_note: Callable[[str], None]) -> Driver:
    """Return what measures on the workers of an executor."""

    def driver(
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        on_progress: Callable[[Progress], None],
    ) -> Outcome:
        with pools.of_executor(executor) as pool:
            return sweep_on(pool, workloads, context, options, on_progress, on_note, each_machine)

    return driver


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
        self.each_machine = each_machine
        self.owner = spool.owner_of(context.results, platform.node())
        self.outcome = Outcome()
        self.roster = Roster(
            pool,
            workloads,
            context,
            options,
            self.owner,
            self.outcome,
            self._on_progress,
            on_note,
        )
        self.waiting = Waiting()
        self.arrivals = Arrivals(self.roster, self.waiting, self.outcome, on_note)
        self.flights = self.arrivals.flights
        self.turns = itertools.count(1)
        self.planned: set[Team] = set()
        self.groups: set[str] = set()

    def run(self, wait_s: float) -> Outcome:
        self.roster.gather(wait_s)
        try:
            self._drive(max(HOPE_S, wait_s))
        except BaseException:  # Ctrl-C included: workers must not go on measuring
            self.pool.stop(self.roster.name.name)
            raise
        finally:
            self._say_stored()
        self.roster.collect()  # what attempts that came to nothing had finished
        for team in self.planned:
            team.state.close()
        return self.outcome

    def _plan(self) -> None:
        """Divide the work among the teams that have come since this was last done."""
        for team in self.roster.teams.values():
            if team in self.planned:
                continue
            self.planned.add(team)
            skipped = {group.name for group, *_ in team.state.plan.skipped}
            team.state.note_skipped(() if self.each_machine else self.groups)
            for name in team.groups:
                if self.each_machine:
                    self.waiting.put(Task(name, team.target, team, fixed=True))
                elif name not in self.groups:
                    self.waiting.put(Task(name, team.target, self._beginner(name, team)))
            self.groups |= {*skipped, *team.groups}

    def _beginner(self, group: str, first: Team) -> Team | None:
        """Return the team that has begun a group in an earlier sweep: it goes on with it."""
        teams = [team for team in self.roster.teams.values() if team.target == first.target]
        team = max(teams, key=lambda team: team.begun(group))
        return team if team.begun(group) else None

    def _drive(self, hope_s: float) -> None:
        busy_s = time.monotonic()
        while True:
            self._plan()
            self._send()
            # Whoever is being asked may do what waits, and with each_machine all of it once more.
            if self.flights or (self.roster.asking and (self.waiting or self.each_machine)):
                busy_s = time.monotonic()
            elif not self.waiting:
                return
            elif time.monotonic() - busy_s > hope_s:
                raise FleetError(
                    f"{len(self.waiting)} share(s) on {', '.join(self.waiting.targets)} are not "
                    f"done, and for {hope_s:.0f} s no worker of {self.pool.name} could take any of "
                    "them. What arrived is stored. Start workers again and run the same command: "
                    "it resumes."
                )
            for event in self.pool.next_events(SHORT_TICK_S if self.roster.asking else TICK_S):
                self._on(event)
            self.roster.take_in()
            self.waiting.look_for(
                {
                    (team, worker.place.host)
                    for worker in self.roster.workers.values()
                    for team in worker.teams.values()
                }
            )

    def _on(self, event: Event) -> None:
        if isinstance(event, Gone):
            raise FleetError(event.text(self.pool.name))
        if isinstance(event, Changed):
            self.roster.look()
        else:
            self.arrivals.on(event)

    def _send(self) -> None:
        """Give every worker that is free something to measure."""
        busy = {device for flight in self.flights.values() for device in flight.devices}
        free = [worker for worker in self.roster.workers.values() if not worker.errand]
        for worker in sorted(free, key=lambda worker: worker.turn):
            place = worker.place
            teams = [t for t in worker.teams.values() if busy.isdisjoint(place.devices(t.target))]
            while task := self.waiting.take(teams, place.host):
                team = worker.teams[task.target]
                job = task.begin(team, place.host, self.options.effort.limit)
                if job:
                    self._fly(task, job, worker, team)
                    busy.update(place.devices(task.target))
                    break

    def _fly(self, task: Task, job: Job, worker: Worker, team: Team) -> None:
        # Another client's errand for the same cases may wait there to take the last ones over.
        *done, _ = [*worker.stored.items()] or [("", 0)]
        errand = Errand(
            id=uuid.uuid4().hex[:16],
            owner=self.owner,
            sweep=self.roster.name.name,
            job=job,
            # Many times what the order itself is, and nothing that the worker asks for.
            expected=msgspec.structs.replace(worker.place, workloads={}, hardware={}, lacking={}),
            devices=worker.place.devices(task.target),
            stored=dict(done),
            fresh=self.options.fresh,
        )
        for name, _ in done:
            del worker.stored[name]
        worker.errand = errand.id
        worker.turn = next(self.turns)
        self.flights[errand.id] = Flight(
            task, job, worker, team, {ref.index: ref for ref in job.cases}
        )
        self.pool.send(errand, worker.place)

    def _say_stored(self) -> None:
        stored = {address: worker.stored for address, worker in self.roster.workers.items()}
        with contextlib.suppress(Exception):  # it is gone: the next sweep finds what it has
            self.pool.forget(self.owner, stored)

    def _on_progress(self, progress: Progress) -> None:
        machine = progress.record.machine if progress.record else ""
        totals: dict[str, list[int]] = {}
        done = 0
        for team in self.roster.teams.values():
            totals.setdefault(team.target, []).append(team.state.total)
            done += team.state.done
        total = sum(sum(found) if self.each_machine else max(found) for found in totals.values())
        self.on_progress(
            dataclasses.replace(progress, done=min(done, total), total=total, machine=machine)
        )
