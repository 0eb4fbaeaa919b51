"""The workers of a sweep: asked what they are, those of no use refused, the others in teams."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.declare.location import Source, locate
from harness.declare.workload import Workload
from harness.engine.context import Context, Host, Options, SweepName
from harness.engine.state import Outcome, Progress, SweepState
from harness.errors import FleetError
from harness.fleet import fitness
from harness.fleet.collection import collect
from harness.fleet.place import Place, Question
from harness.fleet.pool import Answers, Pool
from harness.fleet.queue import Team

ASIDE = 3
"""A worker that is another one than it said this often is not asked again."""

LOOK_S = 0.5


@dataclass(eq=False)
class Worker:
    """A worker that takes part."""

    place: Place
    teams: dict[str, Team]
    """By target."""
    since: str
    """Which of the workers that had this address, one after the other."""
    offset_ms: int = 0
    """How much its clock is ahead, where that is worth a correction."""
    assignment: str = ""
    """What it is at; empty where that is nothing."""
    turn: int = 0
    """When it was last sent something: workers that share a device take turns."""
    stored: dict[str, int] = field(default_factory=dict)
    """What it may remove from its spool."""


class Survey(NamedTuple):
    """What workers answered."""

    asked: Mapping[str, str]
    """Who was asked: their addresses, and which of the workers that had each."""
    answers: Answers
    collected: int
    """Records of an earlier sweep that they kept, and that are stored now."""


class Workers:
    """The workers of a sweep, and the teams that they form.

    Newcomers are asked in threads, while others measure: one that is slow to answer keeps nobody
    idle.
    """

    def __init__(
        self,
        pool: Pool,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        owner: str,
        outcome: Outcome,
        on_progress: Callable[[Progress], None],
        on_note: Callable[[str], None],
    ) -> None:
        self.pool = pool
        self.workloads = workloads
        self.context = context
        self.options = options
        self.owner = owner
        self.outcome = outcome
        self.on_progress = on_progress
        self.on_note = on_note
        self.name = SweepName.of(options)
        self.sources = [locate(workload) for workload in workloads]
        self.versions = fitness.expected(workloads, self.sources)
        self.question = Question(owner, self.sources, _exclude(context.results, self.sources))
        self.there: dict[str, Worker] = {}
        """Those that take part, by address."""
        self.teams: dict[tuple[str, str, str, str], Team] = {}
        self.places: dict[str, Place] = {}
        """Of every worker that has answered."""
        self.refused: dict[str, str] = {}
        """Worker to the reason why it is not used."""
        self.asking = 0
        """Surveys that are under way."""
        self._surveys: queue.SimpleQueue[Survey | Exception] = queue.SimpleQueue()
        self._since: dict[str, str] = {}
        self._aside: Counter[str] = Counter()
        self._noted: set[str] = set()

    def gather(self, wait_s: float) -> None:
        """Find the workers, and wait some seconds for those that are needed and not there yet.

        Raises:
            FleetError: nobody can measure, or not on a target that was asked for; or unlike
                machines have one name.
            StoreError: the results folder cannot take what workers keep; they still have it.
        """
        deadline = time.monotonic() + wait_s
        while True:
            new = self._newcomers()
            if new or not self._since:
                self._admit(self._ask(new), at_first=True)
            lacking = self._lacking()
            if not lacking:
                return
            if time.monotonic() > deadline:
                raise FleetError(lacking)
            time.sleep(LOOK_S)

    def look(self) -> None:
        """Forget workers that are gone, and ask those that have come."""
        new = self._newcomers()
        if new:
            self.asking += 1
            threading.Thread(target=self._ask_aside, args=(new,), daemon=True).start()

    def take_in(self) -> None:
        """Take in workers that have answered since.

        Raises:
            FleetError: the pool is gone.
            StoreError: the results folder cannot take what they have kept.
        """
        while not self._surveys.empty():
            self.asking -= 1
            survey = self._surveys.get()
            if isinstance(survey, Exception):
                raise survey
            self._admit(survey, at_first=False)

    def collect(self) -> None:
        """Fetch what is left on the workers; where one is gone, the next sweep does."""
        offsets_ms = {address: worker.offset_ms for address, worker in self.there.items()}
        with contextlib.suppress(FleetError):
            there = list(self.pool.workers())
            collect(self.pool, self.owner, self.context.results, there, offsets_ms)

    def refuse(self, address: str, why: str) -> None:
        """Use a worker no more, for a reason that can be said after its name."""
        self.there.pop(address, None)
        self.refused[address] = why
        label = self.places[address].label if address in self.places else address
        self._note(f"The worker {label} is not used: it {why}.")

    def ask_again(self, address: str, why: str) -> None:
        """Find out what a worker is that is another one than it said."""
        self._aside[address] += 1
        # One of a pool that cannot say who is there cannot be asked alone.
        if self._aside[address] >= ASIDE or not self.pool.workers():
            self.refuse(address, f"is not what it says: {why}")
        else:
            self._forget(address)
            self.look()

    def _ask(self, workers: Mapping[str, str]) -> Survey:
        answers = self.pool.survey(self.question, sorted(workers))
        offsets_ms = {
            worker: fitness.correction_ms(ns) for worker, ns in answers.offsets_ns.items()
        }
        results = self.context.results
        count = collect(self.pool, self.owner, results, list(workers), offsets_ms)
        return Survey(workers, answers, count)

    def _ask_aside(self, workers: Mapping[str, str]) -> None:
        try:
            self._surveys.put(self._ask(workers))
        except Exception as error:  # raised again where the sweep is driven
            self._surveys.put(error)

    def _newcomers(self) -> dict[str, str]:
        """Forget workers that are gone; return the addresses and ids of those not asked so far."""
        there = self.pool.workers()
        for address, since in list(self._since.items()):
            if there.get(address) != since:
                self._forget(address)
        new = {address: since for address, since in there.items() if address not in self._since}
        self._since |= new
        return new

    def _forget(self, address: str) -> None:
        for known in (self.there, self.places, self.refused, self._since):
            known.pop(address, None)

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.on_note(text)

    def _admit(self, survey: Survey, at_first: bool) -> None:
        if survey.collected:
            self._note(
                f"{survey.collected} record(s) of an earlier sweep were waiting on its workers."
            )
        for address, why in survey.answers.silent.items():
            if self._is(address, survey):
                self.refuse(address, why)
        sent = any(source.pickled for source in self.sources)
        for place in survey.answers.places:
            if not self._is(place.worker, survey):
                continue
            others = [self.places[a] for a in self.places if a not in self.refused]
            self.places[place.worker] = place
            why = fitness.unfit(place, self.context.commit, self.versions, sent)
            unlike = "" if why else fitness.unlike(place, others)
            if unlike and at_first:
                raise FleetError(unlike)
            if why or unlike:
                self.refuse(place.worker, why or f"has the name of another machine: {unlike}")
            else:
                self._take_in(place, survey.answers.offsets_ns.get(place.worker, 0))

    def _is(self, address: str, survey: Survey) -> bool:
        """Tell whether a worker is still the one that answered."""
        if address in survey.asked:
            return self._since.get(address) == survey.asked[address]
        self._since[address] = ""  # of a pool that cannot say who is there
        return True

    def _take_in(self, place: Place, offset_ns: int) -> None:
        wanted = self.options.targets or [t for w in self.workloads for t in w.targets]
        teams: dict[str, Team] = {}
        for target in dict.fromkeys(wanted):
            if fitness.can(place, target, self.pool):
                teams[target] = self._team(place, target)
            if place.resources.get(target) and place.lacking.get(target):
                self._note(
                    f"The worker {place.label} has the resource {target}, but cannot measure on "
                    f"it: {place.lacking[target]}."
                )
        if not teams:
            return
        worker = Worker(place, teams, self._since[place.worker], fitness.correction_ms(offset_ns))
        self.there[place.worker] = worker
        if worker.offset_ms:
            self._note(
                f"The clock of the worker {place.label} is {offset_ns / 1e9:+.0f} s off; the "
                "times in its records are corrected by that. Set the clock of one of the two."
            )

    def _team(self, place: Place, target: str) -> Team:
        """Return the team of a worker on a target, with its state."""
        key = (place.machine, place.env, place.identity, target)
        if key not in self.teams:
            host = Host(place.identity, place.versions, lambda target: None)
            state = SweepState(
                self.workloads,
                dataclasses.replace(self.context, machine=place.machine, env=place.env, host=host),
                dataclasses.replace(self.options, targets=(target,)),
                self.on_progress,
                self.outcome,
                self.name,
            )
            self.teams[key] = Team(target, state, {group.name: group for group in state.groups})
        return self.teams[key]

    def _lacking(self) -> str:
        """Say what has to be there before anything is measured, and is not."""
        for target in self.options.targets or ():
            if not any(fitness.can(w.place, target, self.pool) for w in self.there.values()):
                return fitness.nobody(self.pool, self.places.values(), self.refused, target)
        if not self.there:
            return fitness.nobody(self.pool, self.places.values(), self.refused)
        return ""


def _exclude(results: Path, sources: Sequence[Source]) -> str:
    """Return where the results are, seen from the folder of the first workload with a file."""
    folder = next((Path(source.file).parent for source in sources if source.file), None)
    return os.path.relpath(results.resolve(), folder) if folder else ""
