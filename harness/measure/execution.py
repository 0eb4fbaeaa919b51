"""Carry a job out: start processes until each of its cases has a record.

A process that does not survive a case leaves the others to a next one. What comes of it goes to a
`Listener`, record by record; nothing here knows where records are stored.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from harness.jaxhooks.temporary import temporary_folder
from harness.measure.job import Job, JobCase
from harness.measure.parents import Parents
from harness.measure.process import Listener, MeasuringProcess
from harness.stages.scenarios.registry import SCENARIOS


def execute(job: Job, listener: Listener, parents: Parents | None = None) -> None:
    """Measure the cases of `job`; whatever `listener` raises ends the measuring process.

    Processes are forked from `parents`, where there are any and that is safe.
    """
    todo = job.cases
    if not job.first_call and SCENARIOS[job.scenario].directory == "none":
        while todo:
            todo = MeasuringProcess(job, listener, parents, todo).measure()
    elif todo:
        with temporary_folder() as scratch:
            with_folders = _WithFolders(job, listener, parents, Path(scratch))
            if job.first_call:
                with_folders.first_calls()
            else:
                with_folders.visits()


@dataclass
class _WithFolders:
    """A job whose processes have directories of the persistent cache, made in `scratch`."""

    job: Job
    listener: Listener
    parents: Parents | None
    scratch: Path

    def folder(self) -> str:
        return tempfile.mkdtemp(dir=self.scratch)

    def first_calls(self) -> None:
        """Take the first call of each case in its scenarios, each in a process of its own.

        Cases come in random order, and so do the scenarios of a case, one after the other, so that
        they meet the same machine; but what reads a directory follows the process that fills it.
        """
        rng = random.Random(self.job.seed)
        by_case: dict[int, dict[str, JobCase]] = {}
        for ref in self.job.cases:
            by_case.setdefault(ref.index, {})[ref.scenario] = ref
        for refs in rng.sample(list(by_case.values()), len(by_case)):
            for name in rng.sample(list(refs), len(refs)):
                filled_in = SCENARIOS[name].filled_in
                if filled_in in refs and filled_in != name:
                    continue  # it has its turn with that
                after = [each for each in refs if SCENARIOS[each].filled_in == name != each]
                folder = "" if SCENARIOS[name].directory == "none" else self.folder()
                fingerprints: dict[int, str] = {}
                if filled_in:
                    self._first_call(refs[name], folder, fingerprints, filled_in)
                for each in (name, *after):
                    self._first_call(refs[each], folder, fingerprints)

    def _first_call(
        self, ref: JobCase, folder: str, fingerprints: dict[int, str], filled_in: str = ""
    ) -> None:
        """Call one function in a process of its own; with `filled_in`, only to fill the directory.

        `found` takes the fingerprint of the program, which whoever reads the directory is to have.
        """
        expected = (
            fingerprints.get(ref.index, "") if SCENARIOS[ref.scenario].directory == "filled" else ""
        )
        own = replace(ref, fingerprint=expected)
        base = {**self.job.base, "scenario": ref.scenario}
        fills = bool(filled_in)
        job = replace(self.job, scenario=filled_in or ref.scenario, base=base, fills=fills)
        process = MeasuringProcess(job, self.listener, self.parents, [own], folder)
        process.measure()
        fingerprints |= process.fingerprints

    def visits(self) -> None:
        """Measure in an empty directory, or in one that a process has filled."""
        job, todo = self.job, self.job.cases
        state = SCENARIOS[job.scenario]
        folder = self.folder()
        if state.directory == "filled":
            # A baseline's own cache is filled by first calls, which is all that its `warm` makes.
            scenario = job.scenario if job.backend else state.filled_in
            filling = replace(job, scenario=scenario, passes=1, fills=True)
            filled: dict[int, str] = {}
            left = todo
            while left:
                process = MeasuringProcess(filling, self.listener, None, left, folder)
                left = process.measure()
                filled |= process.fingerprints
            # What was put in, so that an entry that holds another program is noticed.
            todo = [replace(ref, fingerprint=filled.get(ref.index, "")) for ref in todo]
        while todo:
            todo = MeasuringProcess(job, self.listener, self.parents, todo, folder).measure()
            if state.directory == "empty":
                # A process that died may have written some of the others' entries.
                folder = self.folder()
