"""Carry a job out: start processes until each of its cases has a record.

A process that does not survive a case leaves the others to a next one. What comes of it goes to a
:class:`Listener`, record by record; nothing here knows where records are stored.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Protocol

import msgspec

from harness.engine.job import Bye, Done, Hello, Job, JobCase, Message, Visit, unmeasured
from harness.engine.parents import Parents
from harness.engine.process import run
from harness.records.schema import Record
from harness.sides.side_process import variables
from harness.stages.scenarios.registry import SCENARIOS
from harness.watch.temporary import temporary_folder


class Listener(Protocol):
    """Who is told what becomes of a job."""

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        """Take a record: of a case, or with None of the process itself or its reference program.

        `hopeless` says of a failure that another process could not do better.
        """

    def tell(self, case: str, stage: str, ref: JobCase | None = None) -> None:
        """Hear what the process is at; `ref` is the case, where it is at one."""

    def check(self) -> None:
        """Be called some times a second while a process measures; what is raised ends it."""

    def timed(self, bye: Bye) -> None:
        """Hear how much of a process's time was inside timed regions."""


def execute(job: Job, listener: Listener, parents: Parents | None = None) -> None:
    """Measure the cases of `job`; whatever `listener` raises ends the measuring process.

    Processes are forked from `parents`, where there are any and that is safe.
    """
    state = SCENARIOS[job.scenario]
    if job.apart == "first_call":
        with temporary_folder() as scratch:
            _first_calls(job, listener, Path(scratch), parents)
    elif state.directory == "none":
        todo = job.all_cases
        while todo:
            todo = _Round(job, listener, todo, parents=parents).measure()
    elif job.cases:
        with temporary_folder() as scratch:
            _with_cache(job, listener, Path(scratch), parents)


def _first_calls(job: Job, listener: Listener, scratch: Path, parents: Parents | None) -> None:
    """Take the first call of each case in its scenarios, each in a process of its own.

    Cases come in random order, and so do the scenarios of a case, one after the other, so that they
    meet the same machine; but what reads a directory follows the process that fills it.
    """
    rng = random.Random(job.seed)
    by_case: dict[int, dict[str, JobCase]] = {}
    for ref in job.cases:
        by_case.setdefault(ref.index, {})[ref.scenario] = ref
    for refs in rng.sample(list(by_case.values()), len(by_case)):
        for name in rng.sample(list(refs), len(refs)):
            filled_in = SCENARIOS[name].filled_in
            if filled_in in refs and filled_in != name:
                continue  # it has its turn with that
            chain = [name, *(each for each in refs if SCENARIOS[each].filled_in == name != each)]
            folder = "" if SCENARIOS[name].directory == "none" else tempfile.mkdtemp(dir=scratch)
            found: dict[int, str] = {}
            if filled_in:
                _first_call(job, listener, refs[name], folder, found, parents, filled_in)
            for each in chain:
                _first_call(job, listener, refs[each], folder, found, parents)


def _first_call(
    job: Job,
    listener: Listener,
    ref: JobCase,
    folder: str,
    found: dict[int, str],
    parents: Parents | None,
    filled_in: str = "",
) -> None:
    """Call one function in a process of its own; with `filled_in`, only to fill the directory.

    `found` takes the fingerprint of the program, which whoever reads the directory is to have.
    """
    expected = found.get(ref.index, "") if SCENARIOS[ref.scenario].directory == "filled" else ""
    own = msgspec.structs.replace(ref, fingerprint=expected)
    base = {**job.base, "scenario": ref.scenario}
    job = msgspec.structs.replace(job, scenario=filled_in or ref.scenario, base=base)
    process = _Round(job, listener, [own], folder, only_fills=bool(filled_in), parents=parents)
    process.measure()
    found |= process.fingerprints


def _with_cache(job: Job, listener: Listener, scratch: Path, parents: Parents | None) -> None:
    """Measure with a persistent cache, in an empty directory or one that a process has filled."""
    state = SCENARIOS[job.scenario]
    todo = job.cases
    folder = tempfile.mkdtemp(dir=scratch)
    if state.directory == "filled":
        # A baseline's own cache is filled by first calls, which is all that its `warm` makes.
        scenario = job.scenario if job.backend else state.filled_in
        filled: dict[int, str] = {}
        left = todo
        while left:
            filling = _Round(job, listener, left, folder, scenario, only_fills=True)
            left = filling.measure()
            filled |= filling.fingerprints
        # What was put in, so that an entry that holds another program is noticed.
        todo = [msgspec.structs.replace(ref, fingerprint=filled.get(ref.index, "")) for ref in todo]
    while todo:
        todo = _Round(job, listener, todo, folder, parents=parents).measure()
        if state.directory == "empty":
            # A process that died may have written some of the others' entries.
            folder = tempfile.mkdtemp(dir=scratch)


class _Round:
    """One process over what is left of a job; one that `only_fills` the directory keeps none."""

    def __init__(
        self,
        job: Job,
        listener: Listener,
        todo: list[JobCase],
        cache: str = "",
        scenario: str = "",
        only_fills: bool = False,
        parents: Parents | None = None,
    ) -> None:
        needed = {}
        if job.backend:
            needed = variables(job.backend, job.threads, job.precision, cache)
        self.job = msgspec.structs.replace(
            job.with_cases(todo),
            scenario=scenario or job.scenario,
            cache_folder=cache,
            environment={**job.environment, **needed},
            passes=1 if only_fills else job.passes,
        )
        self.listener = listener
        self.only_fills = only_fills
        self.parents = parents
        self.by_key = {ref.key: ref for ref in todo}
        self.part_of = {ref.key: part for part in self.job.parts for ref in part.cases}
        self.left = dict(self.by_key)
        self.hello: Hello | None = None
        self.fingerprints: dict[int, str] = {}
        """Of the programs of the cases that were measured."""

    def measure(self) -> list[JobCase]:
        """Run the process; return what is left because it did not survive."""
        self.listener.tell(f"{len(self.left)} cases", "start")
        look = self.listener.check
        ending = run(self.job, self._on_message, self._on_visit, look, self.parents)
        if ending.bye:
            self.listener.timed(ending.bye)
        if not ending.reason:
            return []
        culprits = list(self.left.values())
        if ending.visit and ending.visit.case in self.by_key:
            # Nobody's fault where it died after the record of the case.
            culprits = [ref for ref in culprits if ref.key == ending.visit.case]
        for ref in culprits:
            del self.left[ref.key]
            if not self.only_fills:
                fields = {"stderr": ending.stderr, **ending.origin}
                if self.hello:
                    fields |= msgspec.structs.asdict(self.hello)
                record = unmeasured(self.part_of[ref.key], ref, "failed", ending.reason, **fields)
                self.listener.keep(record, ref, ending.hopeless)
        return list(self.left.values())

    def _on_message(self, message: Message) -> None:
        if isinstance(message, Hello):
            self.hello = message
        elif isinstance(message, Done):
            ref = self.by_key.get(message.record.key)
            if not self.only_fills:
                self.listener.keep(message.record, ref)
            if ref:
                self.fingerprints[ref.index] = message.record.fingerprint
                self.left.pop(ref.key, None)  # it may come again, with what was counted

    def _on_visit(self, visit: Visit) -> None:
        ref = self.by_key.get(visit.case)
        self.listener.tell(ref.label if ref else "(the reference program)", visit.stage, ref)
