"""The workers of a sweep: asked what they are, those of no use refused, the others in teams."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__
from harness.declare.code import project_differences
from harness.declare.location import Source, locate
from harness.declare.workload import Workload
from harness.engine.context import Context, Host, Options, SweepName
from harness.engine.state import Outcome, Progress, SweepState
from harness.errors import FleetError
from harness.fleet import place, refusals, sources, spool
from harness.fleet.place import Place
from harness.fleet.pool import Pool, Seat, said
from harness.fleet.tasks import Team

LOOK_S = 0.5

VERSION = "__import__('harness').__version__"


@dataclass(eq=False)
class Worker:
    """A worker that has been seen at an address, until it is gone from there."""

    address: str
    seat: Seat
    place: Place | None = None
    """What it says of itself; None until it has."""
    refused: str = ""
    """Why it is not used; can be said after its name."""
    teams: dict[str, Team] = field(default_factory=dict)
    """By target: what it may be given."""
    order: str = ""
    """What it is at; empty where that is nothing."""
    turn: int = 0
    """When it was last sent something: workers that share a device take turns."""
    stored: dict[str, int] = field(default_factory=dict)
    """What it may remove from its spool: orders, and their bytes there."""
    misses: int = 0
    """How many of its orders landed elsewhere, where workers cannot be chosen."""

    @property
    def label(self) -> str:
        """The worker for people: its machine and its address."""
        return f"{self.place.machine} ({self.address})" if self.place else self.address

    def wants(self, target: str) -> bool:
        """Tell whether it was started for a target."""
        return self.seat.resources is None or self.seat.resources.get(target, 0) >= 1

    def lacks(self, target: str) -> str:
        """Return why it measures nothing on a target, as far as that is known."""
        if self.refused or not self.place:
            return self.refused or "has not answered"
        found = self.seat.resources or {}
        resources = ", ".join(f"{name}={n:g}" for name, n in found.items()) or "none"
        reason = self.place.lacking.get(target)
        return f"has the resources: {resources}" + (f"; {reason}" if reason else "")


@dataclass(eq=False)
class Workers:
    """The workers of a sweep, and the teams that they form."""

    pool: Pool
    workloads: Sequence[type[Workload]]
    context: Context
    options: Options
    outcome: Outcome
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]
    events: queue.SimpleQueue[Callable[[], None]]
    """What the thread that drives the sweep is to call."""
    there: dict[str, Worker] = field(default_factory=dict)
    """Everyone, by address."""
    teams: dict[tuple[str, ...], Team] = field(default_factory=dict)
    asking: int = 0
    """How many times workers are being asked what they are."""

    def __post_init__(self) -> None:
        self.owner = spool.owner_of(self.context.results, platform.node())
        self.name = SweepName.of(self.options)
        self.sources = [locate(workload) for workload in self.workloads]
        self.versions = {
            sources.name(source): "" if source.pickled else sources.versions_of(workload)
            for workload, source in zip(self.workloads, self.sources, strict=True)
        }

    def gather(self, wait_s: float) -> None:
        """Find the workers, and wait some seconds for those that are needed and not there yet.

        Raises:
            FleetError: nobody can measure, or not on a target that was asked for.
            StoreError: the results folder cannot take what workers keep; they still have it.
        """
        deadline = time.monotonic() + wait_s
        while True:
            self.look()
            while self.asking:
                self.events.get()()
            lacking = self._lacking()
            if not lacking:
                return
            if time.monotonic() > deadline:
                raise FleetError(lacking)
            time.sleep(LOOK_S)

    def look(self) -> list[Worker]:
        """Ask workers that have come what they are; forget those that are gone, and return them.

        They are asked aside, while others measure: one that is slow to answer keeps nobody idle.
        """
        seats = self.pool.workers()
        gone = [w for a, w in self.there.items() if a not in seats or seats[a].id != w.seat.id]
        for worker in gone:
            del self.there[worker.address]
        new = [Worker(a, seat) for a, seat in seats.items() if a not in self.there]
        self.there |= {worker.address: worker for worker in new}
        if new:
            self.asking += 1
            threading.Thread(target=self._ask, args=(new,), daemon=True).start()
        return gone

    def fetch(self, addresses: Collection[str]) -> int:
        """Store what workers keep and the tree lacks, let them forget it; return how much it was.

        What cannot be reached is left to the next sweep.

        Raises:
            StoreError: the results folder cannot take it; the workers still have it.
        """
        found = self.pool.everywhere(addresses, spool.fetch, self.owner)
        kept = {address: orders for address, orders in found.items() if isinstance(orders, dict)}
        contents = [content for orders in kept.values() for content in orders.values()]
        count = spool.take_in(self.context.results, contents)
        for address, orders in kept.items():
            if orders:
                sizes = {order: len(content) for order, content in orders.items()}
                self.pool.everywhere([address], spool.forget, self.owner, sizes)
        return count

    def refuse(self, worker: Worker, why: str) -> None:
        """Use a worker no more, for a reason that can be said after its name."""
        worker.refused, worker.teams = why, {}
        self.on_note(f"The worker {worker.label} is not used: it {why}.")

    def _ask(self, workers: Sequence[Worker]) -> None:
        """Ask in a thread of its own; the answers are events."""
        addresses = [worker.address for worker in workers]
        asked = self.owner, self.sources, _exclude(self.context.results, self.sources)
        try:
            versions = self.pool.everywhere(addresses, eval, VERSION)
            same = [address for address, version in versions.items() if version == __version__]
            found = versions | self.pool.everywhere(same, place.describe, *asked)
            count = self.fetch(same)
        except Exception as error:  # raised again where the sweep is driven
            self.events.put(functools.partial(_raise, error))
        else:
            self.events.put(functools.partial(self._on_answers, workers, found, same, count))

    def _on_answers(
        self, workers: Sequence[Worker], found: dict[str, Any], same: Sequence[str], count: int
    ) -> None:
        self.asking -= 1
        if count:
            self.on_note(f"{count} finished record(s) were waiting on workers, and are stored now.")
        seats = self.pool.workers()
        for worker in workers:
            address = worker.address
            if self.there.get(address) is not worker or seats.get(address) != worker.seat:
                continue  # it is gone
            answer = found.get(address, TimeoutError("nobody there took the question"))
            if isinstance(answer, Place):
                worker.place = answer
                self._admit(worker, answer)
            elif isinstance(answer, TimeoutError):
                self.refuse(worker, f"does not answer: {answer}")
            elif address in same:
                self.refuse(worker, f"cannot say what it is: {said(answer)}")
            else:
                has = (
                    f"harness {answer}"
                    if isinstance(answer, str)
                    else f"no harness ({said(answer)})"
                )
                self.refuse(worker, f"has {has}, and this is harness {__version__}")

    def _admit(self, worker: Worker, found: Place) -> None:
        sent = any(source.pickled for source in self.sources)
        others = {
            other.label: other.place
            for other in self.there.values()
            if other is not worker and other.place and not other.refused
        }
        why = refusals.unfit(found, self.context.commit, self.versions, sent)
        why = why or refusals.unlike(found, others)
        if why:
            self.refuse(worker, why)
            return
        wanted = self.options.targets or [t for w in self.workloads for t in w.targets]
        for target in filter(worker.wants, dict.fromkeys(wanted)):
            lacking = found.lacking.get(target)
            if not lacking:
                worker.teams[target] = self._team(found, target)
            elif worker.seat.resources:
                self.on_note(
                    f"The worker {worker.label} has the resource {target}, but cannot measure on "
                    f"it: {lacking}."
                )

    def _team(self, found: Place, target: str) -> Team:
        """Return the team of a worker on a target, with its state."""
        key = (found.machine, found.env, found.identity, target)
        if key not in self.teams:
            host = Host(found.identity, found.versions, lambda target: None, project_differences)
            state = SweepState(
                self.workloads,
                dataclasses.replace(self.context, machine=found.machine, env=found.env, host=host),
                dataclasses.replace(self.options, targets=(target,)),
                self.on_progress,
                self.outcome,
                self.name,
            )
            self.teams[key] = Team(target, state, {group.name: group for group in state.groups})
        return self.teams[key]

    def _lacking(self) -> str:
        """Say what has to be there before anything is measured, and is not."""
        has = {target for worker in self.there.values() for target in worker.teams}
        missing = next((one for one in self.options.targets or () if one not in has), "")
        if has and not missing:
            return ""
        name, start = self.pool.name, ""
        if self.pool.chooses:
            start = f"dask worker {name} --nthreads 1 --resources {missing or 'cpu'}=1"
        if not self.there:
            return f"{name} has no workers. Start one on each machine, for example: {start}"
        head = f"No worker of {name} can measure{missing and f' on {missing}'}:"
        reasons = [f"{worker.label} {worker.lacks(missing)}" for worker in self.there.values()]
        text = "\n  ".join([head, *reasons])
        return f"{text}\nStart one where it can be measured: {start}" if start else text


def _raise(error: Exception) -> None:
    raise error


def _exclude(results: Path, sources: Sequence[Source]) -> str:
    """Return where the results are, seen from the folder of the first workload with a file."""
    folder = next((Path(source.file).parent for source in sources if source.file), None)
    return os.path.relpath(results.resolve(), folder) if folder else ""
