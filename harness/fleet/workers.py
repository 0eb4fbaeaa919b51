"""The workers of a sweep, as a pool has them: asked what they are, refused, or put in teams."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from harness import __version__
from harness.declare.code import project_differences
from harness.declare.location import locate
from harness.declare.workload import Workload
from harness.engine.context import Context, Host, Options, SweepName
from harness.engine.job import Job
from harness.engine.outcome import Outcome, Progress
from harness.engine.state import SweepState
from harness.errors import FleetError
from harness.fleet import place, shared, sources
from harness.fleet.place import Place, Question
from harness.fleet.tasks import Task, Team

ANSWER_S = 120.0
"""How long workers may take to say what they are: they import the workloads for it."""


class Seat(NamedTuple):
    """Who has an address."""

    id: str
    """Which of the workers that have had it, one after the other."""
    resources: Mapping[str, float] | None
    """What it is there for, by Dask's `--resources`; None where it takes what it can."""


class Pool(Protocol):
    """Workers that answer questions and carry orders out."""

    name: str
    """What it is called in messages, such as the scheduler's address."""
    chooses: bool
    """Whether an order reaches the worker that it is for; else it may land on another one."""

    def workers(self) -> dict[str, Seat]:
        """Return the workers that are there now, by address.

        Raises:
            FleetError: the pool is gone.
        """

    def ask(self, address: str, question: bytes) -> Future[Any]:
        """Ask a worker, beside what it does: :func:`harness.fleet.place.answer`, or its version."""

    def submit(self, order: bytes, address: str, seat: Seat, target: str) -> Future[bytes]:
        """Send an order to a worker: :func:`harness.fleet.order.carry_out`."""

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """End what is being measured for a sweep."""


def gone(pool: Pool, why: object) -> FleetError:
    """Return the error that says that a pool cannot be reached any more, and what to do."""
    return FleetError(
        f"{pool.name} is gone: {why}. What arrived is stored. "
        "Start it again and run the same command: it resumes."
    )


def said(error: BaseException) -> str:
    """Return what an error says, in one line."""
    # Dask makes plain exceptions of those that a worker raises, with their names in the text.
    text = str(error) if type(error) is Exception else f"{type(error).__name__}: {error}"
    return text.strip().partition("\n")[0][:300] or "gives no reason"


@dataclass(eq=False)
class Attempt:
    """An order that is on its way."""

    task: Task
    job: Job
    team: Team


@dataclass(eq=False)
class Worker:
    """A worker that has been seen at an address, until it is gone from there."""

    address: str
    seat: Seat
    future: Future[Any] | None = None
    """What it is asked, or sent; None where it is free."""
    attempt: Attempt | None = None
    place: Place | None = None
    """What it says of itself; None until it has."""
    refused: str = ""
    """Why it is not used; can be said after its name."""
    teams: dict[str, Team] = field(default_factory=dict)
    """By target: what it may be given."""
    since_s: float = field(default_factory=time.monotonic)
    misses: int = 0
    """How many of its orders landed elsewhere, where workers cannot be chosen."""

    @property
    def label(self) -> str:
        """The worker for people: its machine and its address."""
        return f"{self.place.machine} ({self.address})" if self.place else self.address

    @property
    def host(self) -> str:
        """The machine that it is on, once that is known."""
        return self.place.host if self.place else ""

    def lacks(self, target: str) -> str:
        """Return why it measures nothing on a target, as far as that is known."""
        if self.refused or not self.place:
            return self.refused or "has not answered"
        resources = ", ".join(f"{name}={n:g}" for name, n in (self.seat.resources or {}).items())
        reason = self.place.lacking.get(target)
        return f"has the resources: {resources or 'any'}" + (f"; {reason}" if reason else "")


@dataclass(eq=False)
class Workers:
    """The workers of a sweep, and the teams that they form."""

    pool: Pool
    workloads: Sequence[type[Workload]]
    context: Context
    options: Options
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]
    each_machine: bool
    store: str
    workers: dict[str, Worker] = field(default_factory=dict)
    """Everyone who is there, by address."""
    teams: dict[tuple[str, ...], Team] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)
    """Hosts that are used no more, and why."""
    looked_s: float = 0.0

    def __post_init__(self) -> None:
        self.outcome = Outcome()
        self.name = SweepName.of(self.options)
        self.sources = [locate(workload) for workload in self.workloads]
        self.versions = {
            sources.name(source): "" if source.pickled else sources.versions_of(workload)
            for workload, source in zip(self.workloads, self.sources, strict=True)
        }
        folder = next((Path(source.file).parent for source in self.sources if source.file), None)
        results = self.context.results.resolve()
        self.question = Question(
            sources=self.sources,
            exclude=os.path.relpath(results, folder) if folder else "",
            store=self.store,
        )

    def on_lost(self, worker: Worker, attempt: Attempt, why: str) -> None:
        """Put the work of an attempt that was lost back."""
        raise NotImplementedError

    def look(self) -> None:
        """Ask workers that have come what they are, and put back what those had that are gone."""
        self.looked_s = time.monotonic()
        seats = self.pool.workers()
        for address, worker in list(self.workers.items()):
            if address not in seats or seats[address].id != worker.seat.id:
                del self.workers[address]
                if worker.attempt:
                    self.on_lost(worker, worker.attempt, "the worker was lost")
            elif not (worker.place or worker.refused) and self.looked_s - worker.since_s > ANSWER_S:
                self.refuse(worker, f"does not answer: nothing within {ANSWER_S:g} s")
        question = msgspec.msgpack.encode(self.question)
        for address in [one for one in seats if one not in self.workers]:
            asked = self.pool.ask(address, question)
            self.workers[address] = Worker(address, seats[address], asked)

    def refuse(self, worker: Worker, why: str) -> None:
        """Use a worker no more, for a reason that can be said after its name."""
        worker.refused, worker.teams = why, {}
        if not worker.attempt:
            worker.future = None
        self.on_note(f"The worker {worker.label} is not used: it {why}.")

    def on_answer(self, worker: Worker, future: Future[Any]) -> None:
        """Take what a worker says of itself, and use it or say why not."""
        try:
            answer = future.result()
        except BrokenExecutor as error:
            raise gone(self.pool, said(error)) from error
        except Exception as error:  # of Dask's, or of whoever's executor it is
            text = said(error)
            what = (
                "has no harness" if "No module named 'harness'" in text else "cannot say what it is"
            )
            self.refuse(worker, f"{what} ({text})")
            return
        if not isinstance(answer, bytes):
            self.refuse(worker, f"has harness {answer}, and this is harness {__version__}")
            return
        try:
            found = worker.place = msgspec.msgpack.decode(answer, type=Place)
        except msgspec.MsgspecError as error:
            self.refuse(worker, f"cannot say what it is ({error})")
            return
        others = [w.host for w in self.workers.values() if w.teams]
        if not self.pool.chooses and found.host in others:
            worker.refused = "is on the machine of another one"
            return
        sent = any(source.pickled for source in self.sources)
        why = place.unfit(found, self.context.commit, self.versions, sent)
        why = why or self.aside.get(found.host, "")
        if why:
            self.refuse(worker, why)
            return
        wanted = self.options.targets or [t for w in self.workloads for t in w.targets]
        for target in dict.fromkeys(wanted):
            if worker.seat.resources and worker.seat.resources.get(target, 0) < 1:
                continue
            lacking = found.lacking.get(target)
            if not lacking:
                worker.teams[target] = self._team(found, target)
            elif worker.seat.resources:
                self.on_note(
                    f"The worker {worker.label} has the resource {target}, but cannot measure on "
                    f"it: {lacking}."
                )

    def _team(self, found: Place, target: str) -> Team:
        machine = found.machine if self.each_machine else found.kind
        key = (machine, found.env, found.identity, target)
        if key not in self.teams:
            host = Host(found.identity, found.versions, lambda target: None, project_differences)
            state = SweepState(
                self.workloads,
                dataclasses.replace(self.context, machine=machine, env=found.env, host=host),
                dataclasses.replace(self.options, targets=(target,)),
                self._on_progress,
                self.outcome,
                self.name,
            )
            if self.store:
                file = state.plan.context.store.path.relative_to(self.context.results)
                there = shared.stored(self.store, file)
                state.resume((r.key, r.replicate, r.code) for r in there if r.status == "ok")
            groups = {group.name: group for group in state.groups}
            self.teams[key] = Team(target, machine, state, groups)
        return self.teams[key]

    def lacking(self) -> str:
        """Say what has to be there before anything is measured, and is not."""
        has = {target for worker in self.workers.values() for target in worker.teams}
        missing = next((one for one in self.options.targets or () if one not in has), "")
        if has and not missing:
            return ""
        name, start = self.pool.name, ""
        if self.pool.chooses:
            start = f"dask worker {name} --nthreads 1 --resources {missing or 'cpu'}=1"
        if not self.workers:
            return f"{name} has no workers. Start one on each machine, for example: {start}"
        head = f"No worker of {name} can measure{missing and f' on {missing}'}:"
        reasons = [f"{worker.label} {worker.lacks(missing)}" for worker in self.workers.values()]
        text = "\n  ".join([head, *reasons])
        return f"{text}\nStart one where it can be measured: {start}" if start else text

    def _on_progress(self, progress: Progress) -> None:
        machine = progress.record.machine if progress.record else ""
        totals: dict[str, list[int]] = {}
        for team in self.teams.values():
            totals.setdefault(team.target, []).append(team.state.total)
        done = sum(team.state.done for team in self.teams.values())
        total = sum(sum(each) if self.each_machine else max(each) for each in totals.values())
        self.on_progress(
            dataclasses.replace(progress, done=min(done, total), total=total, machine=machine)
        )
