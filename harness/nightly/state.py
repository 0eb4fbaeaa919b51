"""What a night has done so far: one JSON file, replaced whole after every step."""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.errors import ExitCode, HarnessError, StoreError, UsageError
from harness.records import environment, json_file
from harness.records.files import OWN, replaced
from harness.records.json_file import Count, Milliseconds
from harness.records.store import machine_folder, store_path

SCHEMA = 2
"""Version of the layout of :class:`Night`; from 2 on it has a checksum."""

YOUNG_S = 24 * 3600
"""A night that is not finished is continued for so long without being named."""

IGNORED = "*.log\n*.html\n.lock\n.*.part\n"
"""What of the nights stays out of git: large, or of this machine only."""

ENDS = {
    ExitCode.FINE: "fine",
    ExitCode.WORSE: "something is slower than on the last good night",
    ExitCode.BROKEN: "something fails that was healthy on the last good night",
    ExitCode.SOME_FAILED: "some cases failed, or were not measured",
    ExitCode.UNUSABLE: "an environment measured nothing",
    ExitCode.INCOMPLETE: "measured, but another step failed",
}
"""What a night ends with."""


class StepOutcome(msgspec.Struct):
    """How one step ended; a step that has one is not done again."""

    status: str
    """`ok`, `failed`, `skipped`, or `noisy` (the A/A probe)."""
    note: str = ""
    exit_code: int | None = None
    """Of the command that the step started."""
    seconds: float = 0.0


class RowCounts(msgspec.Struct):
    """What one environment measured: rows of the frame, a row per case and stage."""

    declared_cases: Count
    missing: list[str]
    """Declared cases without any record."""
    ok: Count
    failed: Count
    refused: Count
    skipped: Count
    ok_by_workload: dict[str, Count]
    reasons: dict[str, str]
    """Of what failed: case to reason, the first twenty."""


class Environment(msgspec.Struct):
    """One environment of the night."""

    name: str
    """As it was asked for: `installed`, `newest`, `nightly`, or a release."""
    env: str = ""
    """Its name in the results; "" as long as it could not be made."""
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    rows: RowCounts | None = None


class Verdicts(msgspec.Struct):
    """One comparison."""

    environment: str
    against: str
    """The night before it, or the environment of the previous release."""
    kind: str
    """`night`, or `release`."""
    noisy: bool
    """The night compared with was noisy."""
    difference: str
    """What differs between the two environments."""
    commits: tuple[str, str]
    counts: dict[str, Count]
    file: str
    """The rows, in the night's folder."""
    programs: list[str] = []
    """What changed in the programs that are other ones, a line each. Old nights name none."""
    stages: list[str] = []
    """In words, those that moved as a whole."""
    slower_stages: Count = 0
    """How many of them became slower."""
    inside: list[str] = []
    """What of compiles became slower or faster, a line each, where nights are run with it."""

    @property
    def slower(self) -> int:
        """How many rows, and stages as a whole, became slower."""
        return self.counts.get("slower", 0) + self.slower_stages


class Night(msgspec.Struct):
    """A night: what was asked, what is done, what came of it."""

    schema: int
    night: str
    machine: str
    commit: str
    effort: str
    bench: list[str]
    asked: list[str]
    """The environments that were asked for, by name."""
    without: list[str]
    """Steps that were left out."""
    started_at_ms: Milliseconds
    harness: str
    """The version of the harness."""
    environments: list[Environment]
    steps: dict[str, StepOutcome] = msgspec.field(default_factory=dict)
    verdicts: list[Verdicts] = msgspec.field(default_factory=list)
    finished_at_ms: Milliseconds | None = None
    exit_code: ExitCode | None = None

    @property
    def noisy(self) -> bool:
        """Whether the A/A probe called too many identical rows different."""
        return "probe" in self.steps and self.steps["probe"].status == "noisy"

    @property
    def seconds(self) -> float:
        """How long its steps took."""
        return sum(step.seconds for step in self.steps.values())

    def good(self, environment: str) -> Environment | None:
        """Return an environment if later nights may be compared with it.

        The night is finished, and every case that was declared has a record: also one that failed,
        for a case that fails every night must not end all comparing.
        """
        for found in self.measured() if self.exit_code is not None else ():
            if found.name == environment and found.rows and not found.rows.missing:
                return found
        return None

    def slower(self) -> int:
        """Return how many rows and stages are slower than on the last good night.

        None in a night that is not to be trusted.
        """
        return 0 if self.noisy else sum(v.slower for v in self.verdicts if v.kind == "night")

    def broken(self) -> int:
        """Return how many cases fail that were healthy on the last good night."""
        return sum(v.counts.get("broken", 0) for v in self.verdicts if v.kind == "night")

    def measured(self) -> Iterator[Environment]:
        """Yield the environments that have ok rows."""
        return (one for one in self.environments if one.rows is not None and one.rows.ok)

    def records(self, results: Path, env: str) -> Path:
        """Return the file of this night's records of one environment."""
        return store_path(results, self.machine, self.commit, env, self.night)

    def end(self) -> ExitCode:
        """Return the exit code of a night whose steps are done: the gravest that holds."""
        counted = [one.rows for one in self.environments if one.rows is not None]
        failed = {name for name, outcome in self.steps.items() if outcome.status == "failed"}
        if not counted or any(one.ok == 0 for one in counted):
            return ExitCode.UNUSABLE
        if self.broken():
            return ExitCode.BROKEN
        if any(name.startswith(("measure ", "rows")) for name in failed) or any(
            one.failed or one.refused or one.missing for one in counted
        ):
            return ExitCode.SOME_FAILED
        if self.slower():
            return ExitCode.WORSE
        return ExitCode.INCOMPLETE if failed else ExitCode.FINE


class Nights:
    """The nights of one machine in a results tree."""

    def __init__(self, results: Path, machine: str) -> None:
        self.folder, self.machine = machine_folder(results, machine) / "nights", machine

    def own(self, night: str) -> Path:
        """Return the folder of one night, for its logs, tables and summary."""
        return self.folder / night

    def read(self, night: str) -> Night | None:
        """Return a night, or None if there is none of that name."""
        file = self.folder / f"{night}{OWN}"
        try:
            found = json_file.read(file, Night)
            if found.night != night or found.machine != self.machine:
                raise json_file.DamagedError(
                    f"it is of the night {found.night!r} of the machine {found.machine!r}"
                )
        except FileNotFoundError:
            return None
        except json_file.DamagedError as error:
            raise StoreError(
                f"The night {file} cannot be read: {error}. Its records are intact. Remove "
                "it and run again: what is measured stays, and the other steps are done anew."
            ) from error
        if not 1 <= found.schema <= SCHEMA:
            raise StoreError(
                f"The night {file} has schema {found.schema}, and this harness reads 1 to "
                f"{SCHEMA}. Name another night with --night, or remove the file."
            )
        return found

    def save(self, night: Night) -> None:
        """Replace a night's file, whole or not at all."""
        self.write(".gitignore", IGNORED)
        night.schema = SCHEMA
        json_file.write(self.folder / f"{night.night}{OWN}", night)

    def write(self, name: str, text: str) -> None:
        """Replace a file in the folder, whole or not at all."""
        with replaced(self.folder / name, own=True) as handle:
            handle.write(text.rstrip("\n") + "\n")

    def all(self) -> list[Night]:
        """Return every readable night, oldest first."""
        found = []
        for name in sorted(file.stem for file in self.folder.glob(f"*{OWN}")):
            with contextlib.suppress(HarnessError):
                night = self.read(name)
                if night is not None:
                    found.append(night)
        return sorted(found, key=lambda night: (night.started_at_ms, night.night))

    def choose(self, name: str | None, commit: str) -> str:
        """Return the name of the night to do: `name`, the newest unfinished one, or today."""
        now_s = time.time()
        if name is None:
            for night in reversed(self.all()):
                young = now_s - night.started_at_ms / 1000 < YOUNG_S
                if night.exit_code is None and young and night.commit == commit:
                    return night.night
            name = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d")
        if not environment.night(name):
            raise UsageError("A night needs a name, such as 2026-11-20.")
        begun = self.read(name)
        if begun is not None and begun.commit != commit:
            raise UsageError(
                f"The night {name} was begun at commit {begun.commit[:8]}, and HEAD is "
                f"{commit[:8]}. Check that commit out to go on, or name another night: "
                f"--night {name}.2"
            )
        return name

    def last_like(self, before: Night) -> Night | None:
        """Return the last finished night that was asked for the same."""
        asked = operator.attrgetter("effort", "bench", "asked", "without")
        found = (one for one in self.all() if one.finished_at_ms and asked(one) == asked(before))
        return max(found, key=lambda one: one.started_at_ms, default=None)

    def last_good(self, before: Night, environment: str) -> tuple[Night, Environment] | None:
        """Return the night to compare an environment with, and what it measured in it.

        It is good, and not noisy.

        It had the same effort and the same choice of benchmarks: one that measured a few of them
        by hand says nothing of the others. Where all of them are noisy, the newest of those.
        """
        candidates = [
            (night, found)
            for night in self.all()
            if night.night != before.night
            and night.started_at_ms < before.started_at_ms
            and (night.effort, night.bench) == (before.effort, before.bench)
            and (found := night.good(environment))
        ]
        quiet = [(night, found) for night, found in candidates if not night.noisy]
        return next(reversed(quiet or candidates), None)

    def shortfall(self, night: Night, environment: Environment) -> tuple[str, list[str]]:
        """Return the last good night, "" for none, and the workloads that had more ok rows then.

        A device that is gone shows only here: its cases are no longer declared.
        """
        before = self.last_good(night, environment.name)
        if before is None or environment.rows is None:
            return "", []
        now, old = environment.rows.ok_by_workload, before[1].rows
        return before[0].night, [
            f"{workload}: {now.get(workload, 0)} ok rows, {number} before"
            for workload, number in sorted(old.ok_by_workload.items() if old else ())
            if now.get(workload, 0) < number
        ]
