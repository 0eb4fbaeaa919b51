"""A night, step by step; what is done is kept, so that it can be killed and run again."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable

from harness import __version__
from harness.asv.project import AsvProject, know_machine
from harness.declare import discovery
from harness.declare.workload import name_of
from harness.engine.lock import measuring
from harness.errors import HarnessError, StoreError, UsageError
from harness.nightly import environments, summary, verdicts
from harness.nightly.environments import EnvironmentFailed, Recipe, Runner, last_line
from harness.nightly.state import SCHEMA, Environment, Night, Nights, StepOutcome
from harness.records import json_file
from harness.records.files import OWN
from harness.records.units import seconds_text
from harness.stages import sampling
from harness.verdicts.error_rates import ErrorRates

OPTIONAL = ("probe", "verdicts", "history", "report")
"""Steps that can be left out."""

ASV_SOME_FAILED = 2

NOISY = 0.05
"""A night is noisy if more than one row, and more than this share of rows, of identical arms was
called different."""

_ADDRESS = re.compile(r"\w+://\S+")
_FOLDERS = re.compile(r"(?<![\w.:/-])/(?:[^/\s'\"]+/)+")


class NightRun:
    """One night on one machine, from its beginning or from where it was left."""

    def __init__(
        self,
        project: AsvProject,
        recipe: Recipe,
        say: Callable[[str], None],
        *,
        machine: str,
        night: str | None,
        jax: list[str],
        effort: str,
        bench: list[str],
        probe: str,
        without: list[str],
    ) -> None:
        """Begin a night, or go on with what it was begun with, whatever it is called with later.

        `jax` names environments, none for what this machine can have; `bench` are regular
        expressions of asv's `--bench`, and `probe` one of the workloads of the A/A probe.
        """
        sampling.effort(effort)
        for step in without:
            if step not in OPTIONAL:
                raise UsageError(
                    f"{step!r} is no step that can be left out: expected one of "
                    f"{', '.join(OPTIONAL)}."
                )
        if not project.commit:
            raise UsageError(
                f"Results are filed under a commit, and {project.repo} has none yet: commit first."
            )
        if not re.fullmatch(r"[^/\\\s.][^/\\\s]*", machine):
            raise UsageError(
                f"{machine!r} is no name for a machine: it names a folder of the results."
            )
        self.project, self.recipe, self.say, self.probe = project, recipe, say, probe
        self.nights = Nights(project.results, machine)
        self.name = self.nights.choose(night, project.commit)
        self.own = self.nights.own(self.name)
        if begun := self.nights.read(self.name):
            self.night = begun
            return
        asked = jax or environments.by_default(recipe)
        self.night = Night(
            schema=SCHEMA,
            night=self.name,
            machine=machine,
            commit=project.commit,
            effort=effort,
            bench=bench,
            asked=asked,
            without=without,
            started_at_ms=int(time.time() * 1000),
            harness=__version__,
            environments=[Environment(name) for name in asked],
        )

    def steps(self) -> list[tuple[str, Callable[[], StepOutcome]]]:
        """Return the steps of the night in order: each a name, and what does it."""
        made = self.night.environments
        every: list[tuple[str, Callable[[], StepOutcome]]] = [
            *((f"environment {one.name}", functools.partial(self._make, one)) for one in made),
            ("probe", self._probe),
            *((f"measure {one.name}", functools.partial(self._measure, one)) for one in made),
            ("rows", self._count),
            ("verdicts", self._compare),
            ("history", functools.partial(self._write, "history", OWN, "--format", "json")),
            ("report", functools.partial(self._write, "report", ".html")),
        ]
        return [(name, work) for name, work in every if name not in self.night.without]

    def run(self) -> Night:
        """Do what is left of the night; return it."""
        if self.night.exit_code is not None:
            self.say(f"The night {self.name} is finished; --night NAME begins another.")
            return self.night
        with measuring(self.say):
            # What was waited for may have done some of it.
            self.night = self.nights.read(self.name) or self.night
            self.runner = Runner(self.project.folder)
            know_machine(self.night.machine)
            begins = "goes on as it was begun" if self.night.steps else "begins"
            self.say(f"The night {self.name} {begins}: {self._asked()}. Logs: {self.own}")
            if not self.night.steps and (last := self.nights.last_like(self.night)):
                self.say(f"The night {last.night} took {seconds_text(last.seconds)}.")
            self.nights.save(self.night)
            for name, work in self.steps():
                if name not in self.night.steps:
                    self._do(name, work)
            self.night.exit_code = self.night.end()
            self.nights.write(f"{self.name}/summary.md", summary.render(self.night, self.nights))
            (self.own / "issue.md").unlink(missing_ok=True)
            if text := summary.issue(self.night, self.nights):
                self.nights.write(f"{self.name}/issue.md", text)
            self.night.finished_at_ms = int(time.time() * 1000)
            self.nights.save(self.night)
        return self.night

    def _asked(self) -> str:
        asked = ("environments", self.night.asked), ("benchmarks", self.night.bench)
        chosen = [f"{what} {' '.join(names)}" for what, names in asked if names]
        return ", ".join([f"effort {self.night.effort}", *chosen])

    def _do(self, name: str, work: Callable[[], StepOutcome]) -> None:
        self.say(f"{name} ...")
        began = time.monotonic()
        try:
            outcome = work()
        except StoreError:
            raise
        except HarnessError as error:
            outcome = StepOutcome("failed", str(error))
        outcome.note = without_places(outcome.note)
        outcome.seconds = round(time.monotonic() - began, 1)
        self.night.steps[name] = outcome
        self.nights.save(self.night)
        self.say(f"{name}: {outcome.status}" + (f", {outcome.note}" if outcome.note else ""))

    def _make(self, made: Environment) -> StepOutcome:
        note = environments.make(made, self.recipe, self.runner, self.own)
        for other in self.night.environments:
            if other is not made and other.env == made.env:
                made.env = ""
                return StepOutcome("skipped", f"the same as {other.name}: {note}")
        return StepOutcome("ok", note)

    def _probe(self) -> StepOutcome:
        """Compare identical arms once: whether the machine is quiet enough for verdicts."""
        scratch = self.recipe.folder / f"probe-{self.night.machine}-{self.name}"
        log = self.own / "probe.log"
        selected = self.probe
        if not selected:  # one workload is enough to see a noisy night
            names = sorted(map(name_of, discovery.discover(self.project.benchmarks).workloads))
            selected = f"^{re.escape(names[0])}$" if names else "."
        options = ["--pairs", "1", "--select", selected, "--effort", self.night.effort]
        options += ["--machine", self.night.machine, "--results", str(scratch)]
        code = self.runner.harness("aa", *options, log=log)
        files = sorted((scratch / self.night.machine / "aa").glob(f"*{OWN}"))
        if not files:
            return StepOutcome("failed", f"harness aa ended with {code}: {last_line(log)}", code)
        flagged = json_file.read(files[-1], ErrorRates).flagged
        note = f"{flagged.count} of {flagged.of} rows of identical arms were called different"
        noisy = flagged.count > max(1, NOISY * flagged.of)
        return StepOutcome("noisy" if noisy else "ok", note, code)

    def _measure(self, made: Environment) -> StepOutcome:
        if not made.env:
            return StepOutcome("skipped", self.night.steps[f"environment {made.name}"].note)
        # It may be gone since the night was begun, or hold another release by now.
        began_with = made.env
        environments.make(made, self.recipe, self.runner, self.own)
        if made.env != began_with:
            now, made.env = made.env, began_with
            raise EnvironmentFailed(f"The environment {made.name} was {began_with}, and is {now}.")
        log = self.own / f"asv-{made.name}.log"
        command = [sys.executable, "-m", "asv", "run", "--show-stderr", "--durations", "all"]
        command += ["--config", self.project.config, "--machine", self.night.machine]
        command += ["-E", f"existing:{self.recipe.python(made.name)}"]
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
            return StepOutcome("failed", "asv: some benchmarks failed", code)
        if code:
            return StepOutcome("failed", f"asv ended with {code}: {last_line(log)}", code)
        return StepOutcome("ok", "", code)

    def _count(self) -> StepOutcome:
        wanted = verdicts.declared(self.project, self.night)
        said, fewer = [], []
        for made in self.night.environments:
            if made.env:
                made.rows = verdicts.count(made, wanted, self.night, self.project.results)
                said.append(f"{made.name}: {made.rows.ok} ok rows")
                before, less = self.nights.shortfall(self.night, made)
                if less:
                    more = f" and {len(less) - 1} more" if len(less) > 1 else ""
                    fewer.append(f"fewer than in the night {before}: {less[0]}{more}")
        nothing = [e.name for e in self.night.environments if e.rows is not None and not e.rows.ok]
        if nothing or not said:
            return StepOutcome(
                "failed", f"nothing was measured in {', '.join(nothing) or 'the night'}"
            )
        return StepOutcome("failed" if fewer else "ok", "; ".join([*said, *fewer]))

    def _compare(self) -> StepOutcome:
        self.night.verdicts = []
        troubles = []
        for kind, before, now in verdicts.pairs(self.nights, self.night):
            try:
                self.night.verdicts.append(
                    verdicts.compare(
                        kind, before, now, self.nights, self.runner, self.project.results
                    )
                )
            except verdicts.ComparisonFailed as error:
                troubles.append(str(error))
        if troubles:
            return StepOutcome("failed", "; ".join(troubles))
        if not self.night.verdicts:
            return StepOutcome("skipped", "no good night before this one")
        nights = [v for v in self.night.verdicts if v.kind == "night"]
        said = (
            (self.night.broken(), "cases broken"),
            (sum(v.counts.get("slower", 0) for v in nights), "rows slower"),
            (sum(v.slower_stages for v in nights), "stages slower as a whole"),
            (sum(len(v.programs) for v in nights), "cases with another program"),
        )
        told = ", ".join(f"{count} {what}" for count, what in said if count)
        return StepOutcome("ok", f"{told or 'nothing slower'}, against the last good night")

    def _write(self, command: str, suffix: str, *options: str) -> StepOutcome:
        """Write what a command of this harness makes of all results into the night's folder."""
        log = self.own / f"{command}.log"
        output = ["-o", str(self.own / f"{command}{suffix}")]
        where = ["-r", str(self.project.results)]
        code = self.runner.harness(command, *where, *options, *output, log=log)
        if code not in (0, 4):  # 4: nothing to show, such as the history of one night
            return StepOutcome(
                "failed", f"harness {command} ended with {code}: {last_line(log)}", code
            )
        return StepOutcome("ok" if code == 0 else "skipped", last_line(log), code)


def without_places(text: str) -> str:
    """Return a text without addresses and folders: a night's file may be published."""
    return _FOLDERS.sub("", _ADDRESS.sub("(an address)", text))
