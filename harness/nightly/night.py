"""A night, step by step; what is done is kept, so that it can be killed and run again."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import __version__
from harness.errors import HarnessError, StoreError, UsageError
from harness.nightly import environments, judging, probing, rows, summary
from harness.nightly.commands import Runner, alone, last_line
from harness.nightly.ending import exit_code, without_places
from harness.nightly.environments import EnvironmentFailed, Recipe
from harness.nightly.project import Project, know_machine
from harness.nightly.state import SCHEMA, Book, Environment, Night, Outcome, replace
from harness.stages import sampling

OPTIONAL = ("probe", "verdicts", "history", "report")
"""Steps that can be left out."""

ASV_SOME_FAILED = 2


@dataclass(frozen=True)
class Wanted:
    """What a night is asked to do."""

    machine: str
    night: str | None = None
    jax: tuple[str, ...] = ()
    """Environments; none for what this machine can have."""
    effort: str = "default"
    bench: tuple[str, ...] = ()
    """Regular expressions of asv's `--bench`."""
    probe: str = ""
    """Regular expression of the workloads that the A/A probe measures."""
    without: tuple[str, ...] = ()


class Work:
    """One night on one machine, from its beginning or from where it was left."""

    def __init__(
        self, project: Project, wanted: Wanted, recipe: Recipe, say: Callable[[str], None]
    ) -> None:
        sampling.effort(wanted.effort)
        for step in wanted.without:
            if step not in OPTIONAL:
                raise UsageError(
                    f"{step!r} is no step that can be left out: expected one of "
                    f"{', '.join(OPTIONAL)}."
                )
        if not project.commit:
            raise UsageError(
                f"Results are filed under a commit, and {project.repo} has none yet: commit first."
            )
        if not re.fullmatch(r"[^/\\\s.][^/\\\s]*", wanted.machine):
            raise UsageError(
                f"{wanted.machine!r} is no name for a machine: it names a folder of the results."
            )
        self.project, self.wanted, self.recipe, self.say = project, wanted, recipe, say
        self.book = Book(project.results, wanted.machine)
        self.name = self.book.choose(wanted.night, project.commit)
        # A night goes on with what it was begun with, whatever it is called with later.
        self.night = self.book.read(self.name) or self._begin()
        self.own = self.book.own(self.name)

    def _begin(self) -> Night:
        asked = list(self.wanted.jax) or environments.by_default(self.recipe)
        return Night(
            schema=SCHEMA,
            night=self.name,
            machine=self.wanted.machine,
            commit=self.project.commit,
            effort=self.wanted.effort,
            bench=list(self.wanted.bench),
            asked=asked,
            without=list(self.wanted.without),
            started_at_ms=int(time.time() * 1000),
            harness=__version__,
            environments=[Environment(name) for name in asked],
        )

    def steps(self) -> list[tuple[str, Callable[[], Outcome]]]:
        """Return the steps of the night in order: each a name, and what does it."""
        every: list[tuple[str, Callable[[], Outcome]]] = []
        for found in self.night.environments:
            every.append((f"environment {found.name}", functools.partial(self._make, found)))
        every.append(("probe", self._probe))
        for found in self.night.environments:
            every.append((f"measure {found.name}", functools.partial(self._measure, found)))
        every += [
            ("rows", self._count),
            ("verdicts", self._judge),
            ("history", self._history),
            ("report", self._report),
        ]
        return [(name, work) for name, work in every if name not in self.night.without]

    def run(self) -> Night:
        """Do what is left of the night; return it.

        Raises:
            StoreError: the results cannot be read or written.
            UsageError: another night is running.
        """
        if self.night.exit_code is not None:
            self.say(f"The night {self.name} is finished; --night NAME begins another.")
            return self.night
        with alone(self.book.folder) as lock:
            self.runner = Runner(self.project.folder, lock)
            know_machine(self.night.machine)
            begins = "goes on as it was begun" if self.night.steps else "begins"
            self.say(f"The night {self.name} {begins}: {self._asked()}. Logs: {self.own}")
            self.book.save(self.night)
            for name, work in self.steps():
                if name not in self.night.steps:
                    self._do(name, work)
            self.night.exit_code = exit_code(self.night)
            self._summarise()
            self.night.finished_at_ms = int(time.time() * 1000)
            self.book.save(self.night)
        return self.night

    def _asked(self) -> str:
        asked = ("environments", self.night.asked), ("benchmarks", self.night.bench)
        chosen = [f"{what} {' '.join(names)}" for what, names in asked if names]
        return ", ".join([f"effort {self.night.effort}", *chosen])

    def _do(self, name: str, work: Callable[[], Outcome]) -> None:
        self.say(f"{name} ...")
        began = time.monotonic()
        try:
            outcome = work()
        except StoreError:
            raise
        except HarnessError as error:
            outcome = Outcome("failed", str(error))
        outcome.note = without_places(outcome.note)
        outcome.seconds = round(time.monotonic() - began, 1)
        self.night.steps[name] = outcome
        self.book.save(self.night)
        self.say(f"{name}: {outcome.status}" + (f", {outcome.note}" if outcome.note else ""))

    def _make(self, found: Environment) -> Outcome:
        note = environments.make(found, self.recipe, self.runner, self.own)
        for other in self.night.environments:
            if other is not found and other.env == found.env:
                found.env = ""
                return Outcome("skipped", f"the same as {other.name}: {note}")
        return Outcome("ok", note)

    def _probe(self) -> Outcome:
        scratch = self.recipe.folder / f"probe-{self.night.machine}-{self.name}"
        chosen = self.wanted.probe or probing.first_workload(self.project.benchmarks)
        return probing.probe(self.night, chosen, scratch, self.own, self.runner)

    def _measure(self, found: Environment) -> Outcome:
        if not found.env:
            return Outcome("skipped", self.night.steps[f"environment {found.name}"].note)
        # It may be gone since the night was begun, or hold another release by now.
        began_with = found.env
        environments.make(found, self.recipe, self.runner, self.own)
        if found.env != began_with:
            now, found.env = found.env, began_with
            raise EnvironmentFailed(f"The environment {found.name} was {began_with}, and is {now}.")
        log = self.own / f"asv-{found.name}.log"
        command = [sys.executable, "-m", "asv", "run", "--show-stderr", "--durations", "all"]
        command += ["--config", self.project.config, "--machine", self.night.machine]
        command += ["-E", f"existing:{self.recipe.python(found.name)}"]
        command += ["--set-commit-hash", self.night.commit]
        for pattern in self.night.bench:
            command += ["--bench", pattern]
        variables = {
            "HARNESS_EFFORT": self.night.effort,
            "HARNESS_NIGHT": self.name,
            "HARNESS_MACHINE": self.night.machine,
            "HARNESS_RESULTS": str(self.project.results),
            "HARNESS_FRESH": "",  # a night resumes
        }
        code = self.runner.run(command, log, variables)
        if code == ASV_SOME_FAILED:
            return Outcome("failed", "asv: some benchmarks failed", code)
        if code:
            return Outcome("failed", f"asv ended with {code}: {last_line(log)}", code)
        return Outcome("ok", "", code)

    def _count(self) -> Outcome:
        wanted = rows.declared(self.project, self.night)
        said, fewer = [], []
        for found in self.night.environments:
            if found.env:
                found.rows = rows.count(found, wanted, self.night, self.project.results)
                said.append(f"{found.name}: {found.rows.ok} ok rows")
                before, less = rows.shortfall(found, self.night, self.book)
                if less:
                    more = f" and {len(less) - 1} more" if len(less) > 1 else ""
                    fewer.append(f"fewer than in the night {before}: {less[0]}{more}")
        nothing = [e.name for e in self.night.environments if e.rows is not None and not e.rows.ok]
        if nothing or not said:
            return Outcome("failed", f"nothing was measured in {', '.join(nothing) or 'the night'}")
        return Outcome("failed" if fewer else "ok", "; ".join([*said, *fewer]))

    def _judge(self) -> Outcome:
        self.night.verdicts = []
        troubles = []
        for kind, before, now in judging.pairs(self.book, self.night):
            try:
                self.night.verdicts.append(
                    judging.compare(
                        kind,
                        before,
                        (self.night, now),
                        self.book,
                        self.runner,
                        self.project.results,
                    )
                )
            except judging.JudgingFailed as error:
                troubles.append(str(error))
        if troubles:
            return Outcome("failed", "; ".join(troubles))
        if not self.night.verdicts:
            return Outcome("skipped", "no good night before this one")
        slower = sum(v.counts.get("slower", 0) for v in self.night.verdicts if v.kind == "night")
        return Outcome("ok", f"{slower} rows slower than on the last good night")

    def _history(self) -> Outcome:
        return self._harness("history", "--format", "json", "-o", str(self.own / "history.json"))

    def _report(self) -> Outcome:
        return self._harness("report", "-o", str(self.own / "report.html"))

    def _harness(self, command: str, *options: str) -> Outcome:
        log = self.own / f"{command}.log"
        call = [sys.executable, "-m", "harness", command, str(self.project.results), *options]
        code = self.runner.run(call, log)
        if code not in (0, 4):  # 4: nothing to show, such as the history of one night
            return Outcome("failed", f"harness {command} ended with {code}: {last_line(log)}", code)
        return Outcome("ok" if code == 0 else "skipped", last_line(log), code)

    def _summarise(self) -> None:
        replace(self.own / "summary.md", summary.render(self.night, self.book).encode())
        slower = self.own / "issue.md"
        slower.unlink(missing_ok=True)
        if text := summary.issue(self.night, self.book):
            replace(slower, text.encode())


def recipe_for(
    project: Project, folder: Path | None, requirements: tuple[str, ...], nightly_index: str
) -> Recipe:
    """Return how the environments of a project are built."""
    home = (folder or project.folder / ".asv" / "nightly").resolve()
    return Recipe(home, project.package, requirements, nightly_index)
