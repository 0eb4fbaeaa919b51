"""Drive a sweep over the workers of a pool: who measures what next, and what comes back."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.job import unmeasured
from harness.engine.outcome import Outcome, Progress
from harness.errors import FleetError, UsageError
from harness.fleet import order as orders
from harness.fleet import tasks
from harness.fleet.order import Order, Result, pack
from harness.fleet.tasks import HostLoops, Queue, Takers, Task, Team
from harness.fleet.workers import Attempt, Pool, Worker, Workers, gone, said
from harness.records.schema import decode
from harness.records.units import counted

LOOK_S = 1.0
"""How often the list of workers is looked at."""

TICK_S = 0.5

WAIT_S = 5.0
"""How long a sweep waits at first for workers that are not there yet."""

HOPE_S = 30.0
"""How long a sweep whose remaining work no worker can take waits for one, at least."""

GRACE_S = 15.0
"""How long a machine whose last worker is lost may take to come back, before what it was measuring
is measured anew elsewhere."""

STOP_S = 5.0
"""How long workers that are told to stop may take to send what they have finished."""

PLACE_S = 30.0
"""How often it is kept which class measures what, so that a client that is killed leaves it."""

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
    store: str = "",
) -> Outcome:
    """Measure every case of `workloads` on the workers of `pool`, and return what there is then.

    Args:
        pool: the workers.
        workloads: what to measure. The workers have the same source.
        context: of this machine: the results tree, the commit and the night; each record names
            the class of machine, the machine and the environment that measured it.
        options: how; `keep_programs` is not for fleets.
        on_progress: called whenever a record arrives.
        on_note: called with what a user should know: workers that are not used, and why.
        each_machine: measure every case on every machine that can, under that machine's own name,
            and not once on a machine of its class.
        wait_s: how many seconds to wait for workers where none can measure, at first, and if that
            is longer than :data:`HOPE_S`, later.
        store: a folder or bucket, by an address of fsspec's, that workers put records into, and
            that the outcome then lacks; "" for the results tree, by way of this process.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        FleetError: no worker can do what is left; what arrived is stored.
        StoreError: the results folder cannot take records; those before are kept.
        UsageError: a store with an effort that looks at what it has measured.
    """
    for workload in workloads:
        check(workload)
    if store and options.effort.adaptive:
        raise UsageError(
            "--store does not work with an effort that adds processes where intervals are wide "
            "(thorough): it would have to read the records. Name one such as 8x3."
        )
    if store and "://" not in store:
        store = str(Path(store).resolve())  # workers may be in other folders
    asked = pool, workloads, context, options, on_progress, on_note, each_machine, store
    return _Sweep(*asked).run(wait_s)


@dataclass(eq=False)
class _Sweep(Workers):
    tasks: list[Task] = field(default_factory=list)
    """All of them."""
    queue: Queue = field(default_factory=Queue)
    """Those that wait."""
    planned: set[Team] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    gone_s: dict[Takers, float] = field(default_factory=dict)
    """When who may take tasks was first seen to be gone."""
    placed_s: float = field(default_factory=time.monotonic)
    """When it was last kept which class measures what."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loops: defaultdict[str, HostLoops] = defaultdict(HostLoops)
        self.placement = {} if self.each_machine else tasks.read_placement(self.context.results)

    def run(self, wait_s: float) -> Outcome:
        try:
            self._gather(time.monotonic() + wait_s)
            self._drive(max(HOPE_S, wait_s))
        except BaseException:  # Ctrl-C included: workers must not go on measuring
            self._stop()
            raise
        finally:
            self._place()
        for team in self.planned:
            team.state.close()
        return self.outcome

    def _stop(self) -> None:
        """End what is being measured, and store what was finished of it."""
        busy = {w.future: w for w in self.workers.values() if w.future and w.attempt}
        self.pool.stop(self.name.name, [worker.address for worker in busy.values()])
        wait(busy, STOP_S)
        for future, worker in busy.items():
            future.cancel()
            with contextlib.suppress(Exception, CancelledError):  # the pool may be what has ended
                if worker.attempt and future.done():
                    self._keep(worker.attempt, orders.decode_result(future.result()))

    def _place(self) -> None:
        self.placed_s = time.monotonic()
        begun = {t.name: t.team.machine for t in self.tasks if t.team and t.process}
        if not self.each_machine and begun.items() - self.placement.items():
            self.placement |= begun
            tasks.write_placement(self.context.results, begun)

    def _gather(self, deadline: float) -> None:
        """Find the workers, and wait for those that are needed and not there yet."""
        while True:
            self.look()
            while any(not w.place and not w.refused for w in self.workers.values()):
                self._wait()
            lacking = self.lacking()
            if not lacking:
                return
            if time.monotonic() > deadline:
                raise FleetError(lacking)
            time.sleep(TICK_S)

    def _drive(self, hope_s: float) -> None:
        busy_s = time.monotonic()
        while True:
            self._plan()
            self._assign()
            measured = any(worker.attempt for worker in self.workers.values())
            # Whoever is being asked may do what waits, and with each_machine all of it once more.
            asked = any(worker.future for worker in self.workers.values())
            if measured or (asked and (self.queue or self.each_machine)):
                busy_s = time.monotonic()
            elif not self.queue:
                return
            elif time.monotonic() - busy_s > hope_s:
                raise FleetError(self._left(hope_s))
            self._wait()

    def _left(self, hope_s: float) -> str:
        left = list(self.queue)
        homes = sorted({task.home for task in left if task.home})
        stays = (
            f" They stay with {', '.join(homes)}, which measured them before: numbers of another "
            f"class would be put against theirs. Where it is gone for good, remove its lines from "
            f"{self.context.results / 'placement.json'}."
        )
        return (
            f"Not done: {counted(len(left), 'group')} of cases on "
            f"{', '.join(sorted({t.target for t in left}))}; for {hope_s:.0f} s no worker of "
            f"{self.pool.name} could take any of them.{stays if homes else ''} "
            "What arrived is stored. Start workers again and run the same command: it resumes."
        )

    def _wait(self) -> None:
        """Wait for an answer or a result, and take in all that there are; look who is there."""
        busy = [(worker.future, worker) for worker in self.workers.values() if worker.future]
        if not busy:
            time.sleep(TICK_S)
        wait([future for future, _ in busy], TICK_S, FIRST_COMPLETED)
        for future, worker in busy:
            if future.done() and worker.future is future:  # else it was lost meanwhile
                worker.future = None
                if worker.attempt:
                    self._on_result(worker, worker.attempt, future)
                else:
                    self.on_answer(worker, future)
        if time.monotonic() - self.looked_s > LOOK_S:
            self.look()
            self._release()
            if self.looked_s - self.placed_s > PLACE_S:
                self._place()

    def _release(self) -> None:
        """Let others take what machines had begun that have been gone for too long."""
        there = {
            key
            for worker in self.workers.values()
            for key in tasks.keys(worker.teams.values(), worker.host)
        }
        for key in self.queue.waited_for():
            if not key.host or key in there:
                self.gone_s.pop(key, None)
            elif self.looked_s - self.gone_s.setdefault(key, self.looked_s) > GRACE_S:
                for task in self.queue.take(key):
                    task.release()
                    self.queue.push(task)

    # Who measures what

    def _plan(self) -> None:
        """Divide the work among the teams that have come since this was last done."""
        for team in self.teams.values():
            if team in self.planned:
                continue
            self.planned.add(team)
            skipped = {group.name for group, *_ in team.state.plan.skipped}
            team.state.note_skipped(() if self.each_machine else self.groups)
            for name in team.groups:
                if self.each_machine or name not in self.groups:
                    task = Task(name, team.target, len(self.tasks), fixed=self.each_machine)
                    if self.each_machine:
                        task.team = team
                    else:
                        task.home = self.placement.get(name, "")
                    self.tasks.append(task)
                    self.queue.push(task)
            self.groups |= {*skipped, *team.groups}

    def _assign(self) -> None:
        """Give every worker that is free something to measure: the earliest process of all."""
        for worker in self.workers.values():
            if worker.future or worker.attempt:
                continue
            allowed = tasks.keys(worker.teams.values(), worker.host)
            while (task := self.queue.pop(allowed)) is not None:
                team = worker.teams[task.target]
                if job := task.begin(team, worker.host):
                    self._send(worker, Attempt(task, job, team))
                    break

    def _send(self, worker: Worker, attempt: Attempt) -> None:
        order = Order(
            sweep=self.name.name,
            job=attempt.job,
            host=worker.host,
            identity=attempt.team.state.plan.context.host.identity,
            devices=worker.place.devices(attempt.task.target) if worker.place else [],
            store=self.store,
        )
        worker.attempt = attempt
        try:
            worker.future = self.pool.submit(
                pack(order), worker.address, worker.seat, attempt.task.target
            )
        except FleetError:
            raise
        except Exception as error:  # an executor of somebody's may raise anything
            raise gone(self.pool, said(error)) from error

    # What comes back

    def _on_result(self, worker: Worker, attempt: Attempt, future: Future[bytes]) -> None:
        try:
            result = orders.decode_result(future.result())
        except BrokenExecutor as error:
            raise gone(self.pool, said(error)) from error
        except Exception as error:  # of Dask's, or of whoever's executor it is
            self.look()  # raises where it is the pool that is gone
            if worker.attempt:
                self.on_lost(worker, attempt, said(error))
            return
        task = attempt.task
        worker.attempt = None
        self._keep(attempt, result)
        if not result.refused:
            task.done.append(task.process)
            task.advance()
        elif result.elsewhere and not self.pool.chooses and worker.misses < MISSES:
            worker.misses += 1
            time.sleep(MISSED_S)
        else:
            task.put_back(f"{worker.label}: {result.refused}")
            was = "is not what it said" if result.elsewhere else "cannot go on"
            self.refuse(worker, f"{was}: {result.refused}")
        why = ""
        if result.loop_ns and worker.host not in self.aside:
            why = self.loops[attempt.team.machine].outlying(worker.host, result.loop_ns)
        if worker.host in self.aside:
            task.forget()
        self.queue.push(task)
        if why:
            self._put_aside(worker, why)

    def _keep(self, attempt: Attempt, result: Result) -> None:
        state, group = attempt.team.state, attempt.team.groups[attempt.task.name]
        refs = {ref.key: ref for ref in attempt.job.cases}
        process = attempt.job.process
        place = {name: attempt.job.base.get(name) for name in ("machine", "env", "commit", "night")}
        for record in map(decode, result.records.splitlines()):
            if isinstance(record, str) or any(getattr(record, n) != v for n, v in place.items()):
                result.refused = "it returned what is no record of what it was asked"
            else:
                hopeless = record.key in result.hopeless
                state.keep(record, group, refs.get(record.key), process, hopeless)
        for key in result.done:
            state.know(key, group, process)
        self.outcome.timed_ns += result.timed_ns
        self.outcome.wall_ns += result.wall_ns

    def _put_aside(self, worker: Worker, why: str) -> None:
        """Use a host no more, and let the others of its class measure what it has."""
        host = worker.host
        self.aside[host] = f"is put aside: {why}"
        self.outcome.aside[worker.label] = self.aside[host]
        for other in self.workers.values():
            if other.host == host and not other.refused:
                self.refuse(other, self.aside[host])
        waiting = [task for key in self.queue.waited_for() for task in self.queue.take(key)]
        moving = {id(w.attempt.task) for w in self.workers.values() if w.attempt}
        for task in self.tasks:
            if task.host == host and id(task) not in moving:
                task.forget()
                if task not in waiting:
                    waiting.append(task)
        for task in waiting:
            self.queue.push(task)

    def on_lost(self, worker: Worker, attempt: Attempt, why: str) -> None:
        """Put the work of an attempt that was lost back, or give up its cases."""
        if worker.future:
            worker.future.cancel()
        worker.attempt = worker.future = None
        task, job = attempt.task, attempt.job
        task.losses += 1
        task.put_back(f"{worker.label}: {why}")
        given_up = task.losses == LOSSES
        self.on_note(
            f"{task.name}, process {job.process + 1}: {worker.label}: {why}. "
            f"It is {'given up' if given_up else 'done again'}."
        )
        if given_up:
            reason = f"given up after {LOSSES} attempts; the last: {task.retries[-1]}"
            group = attempt.team.groups[task.name]
            for ref in job.cases:
                record = unmeasured(job, ref, "failed", reason, retries=list(task.retries))
                attempt.team.state.keep(record, group, ref, job.process, hopeless=True)
            task.advance()
        self.queue.push(task)
