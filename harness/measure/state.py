"""The state of a sweep: the records from before and of now, what is left, and what went wrong."""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.measure.context import Context, Options, SweepName, broken_records
from harness.measure.estimate import Pace
from harness.measure.job import Job, JobCase, unmeasured
from harness.measure.outcome import Outcome, Progress
from harness.measure.plan import Group, Plan
from harness.records import kept
from harness.records.schema import Record
from harness.stages import sampling
from harness.stages.registry import LONG_COMPILE_S, values_ns
from harness.workload.code import conflicts, project_folder, proven
from harness.workload.workload import Workload, name_of

MAX_FAILURES = 2
"""A case that failed in this many processes is left alone: it is a defect, not an accident."""

APART_S = 30.0
"""A case whose first calls have taken this long, in all scenarios together, gets no more."""

_MEASURED = ("ok", "refused")

_CODE_IS_KNOWN_S = 2.0
"""For so long, what was found out about the code of a record is not looked up again."""


class SweepState:
    """One machine's part of a sweep: what to measure next, and what became of it."""

    def __init__(
        self,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        on_progress: Callable[[Progress], None],
        outcome: Outcome,
        sweep: SweepName | None = None,
    ) -> None:
        self.options = options
        self.on_progress = on_progress
        self.outcome = outcome
        self.store = context.store
        self.store.open()
        programs = None
        if options.keep_programs:
            programs = kept.folder_of(context.results.resolve(), context.machine)
            kept.open_folder(programs)
        self.known_bytes = self.store.size()
        """How much of the store has been read, or was written here."""
        stored = self.store.read(outcome.problems)
        self.before = {(r.key, r.replicate): r for r in stored}
        self._programs = {
            r.key: (r.fingerprint, r.code) for r in stored if r.fingerprint and r.code
        }
        """Of each case, the program that was measured last, and of which code."""
        self.now: dict[tuple[str, str], Record] = {}
        self._code: dict[bytes, tuple[float, list[str]]] = {}
        """Of the code of records: when it was looked at, and what is other code now."""
        self.failures: dict[str, int] = {}
        """By the key of a case: how many processes failed at it."""
        self.plan = Plan(workloads, context, options, sweep, programs)
        self.groups = self.plan.groups
        self.store.append(broken_records(stored, context, options, self.plan.sweep))
        self.rounds = max(
            [options.effort.limit, *(n for each in self.groups for n in each.processes.values())]
        )
        """How many processes a group has at the most."""
        self.total = sum(map(self.plan.size, self.groups))
        self.done = 0
        self.settled: set[tuple[str, str]] = set()
        """Key and replicate of what is counted in `done`."""
        self.added: set[str] = set()
        """Replicates that `thorough` has added."""
        self.pace: Pace | None = None
        """How fast it measures, once it has begun to."""

    def job(self, group: Group, process: int) -> Job | None:
        """Return what process number `process` of a group has still to measure; None if nothing."""
        self._catch_up()
        wanted = group.refs
        replicate = group.replicate(process)
        if group.first_call:
            wanted = self._first_calls(group, process)
        elif process >= self.options.effort.limit:
            return None
        elif process >= self.options.effort.processes:
            wanted = self.wide(group)
            if replicate not in self.added:
                self.added.add(replicate)
                self.total += len(wanted)
        todo, since_ms = [], self.options.since_ms
        for ref in wanted:
            name = ref.key, replicate
            earlier, current = self.before.get(name), self.now.get(name)
            project = project_folder(group.source)
            differing = self._differing(current.code, project) if current else []
            if edited := [one for one in differing if proven(one, project)]:
                self.outcome.edited = sorted({*self.outcome.edited, *edited})
                todo.append(ref)
                continue
            if current or name in self.settled:
                continue  # from an attempt at this job that came to nothing after it
            if (
                earlier
                and earlier.status in _MEASURED
                and not self.options.fresh
                # None older than what is asked for, nor from a clock that was ahead.
                and (not since_ms or since_ms <= earlier.started_at_ms <= time.time() * 1000)
                and earlier.code  # an old record does not say what it ran
                and not self._differing(earlier.code, project)
                and not (self.plan.opens_up(group, process) and earlier.compile_times is None)
            ):
                self.now[name] = earlier
                self.outcome.reused += 1
                self._settle(name)
            elif self.failures.get(ref.key, 0) >= MAX_FAILURES:
                self._settle(name)
            else:
                todo.append(ref)
        return self.plan.job(group, todo, process) if todo else None

    def begin(self, earlier: Path | None) -> None:
        """Say how long what is left will take, as far as records of earlier sweeps tell.

        Args:
            earlier: their folder, where it is not that of the sweep's own.
        """
        effort = self.options.effort
        jobs = [
            job
            for group in self.groups
            for process in range(max([effort.processes, *group.processes.values()]))
            if (job := self.job(group, process))
        ]
        self.pace = Pace(jobs, earlier or self.store.path.parent)
        estimate = self.pace.expected(effort.adaptive)
        self.on_progress(Progress("", "", "", 0, self.done, self.total, expected=estimate))

    def end(self, job: Job, seconds: float) -> None:
        """Note how long a job took."""
        if self.pace:
            self.pace.end(job, seconds)

    def _first_calls(self, group: Group, process: int) -> list[JobCase]:
        """Return the cases of a group of which process number `process` is to take first calls.

        What could not be measured where it is built is left out, and so is what takes long.
        """
        spent_s: defaultdict[int, float] = defaultdict(float)
        for ref, earlier in itertools.product(group.refs, range(process)):
            record = self.now.get((ref.key, group.replicate(earlier)))
            if record and "first_call" in record.stages:
                spent_s[ref.index] += sum(record.stages["first_call"].samples_ns) / 1e9
        wanted = []
        for ref in group.refs:
            if process >= group.processes[ref.scenario]:
                continue
            failures = self.failures.get(self.plan.visited[ref.key], 0)
            hopeless = failures >= MAX_FAILURES or failures > process
            if hopeless or spent_s[ref.index] >= APART_S:
                self._settle((ref.key, group.replicate(process)))
            else:
                wanted.append(ref)
        return wanted

    def _differing(self, code: dict[str, str], project: Path) -> list[str]:
        """Return what of the code of a record has become other code since it was measured."""
        now = time.monotonic()
        encoded = msgspec.json.encode(code)
        looked, names = self._code.get(encoded, (-math.inf, []))
        if now - looked > _CODE_IS_KNOWN_S:
            names = self.plan.context.host.other_code(code, project)
            self._code[encoded] = now, names
        return names

    def _settle(self, name: tuple[str, str]) -> None:
        if name not in self.settled:
            self.settled.add(name)
            self.done += 1

    def _append(self, record: Record) -> None:
        begin, end = self.store.append([record])
        if begin == self.known_bytes:
            self.known_bytes = end

    def _catch_up(self) -> None:
        """Read what another sweep into the same results has stored meanwhile."""
        if self.store.size() > self.known_bytes:
            new, self.known_bytes = self.store.read_from(self.known_bytes)
            self.before |= {(r.key, r.replicate): r for r in new}

    def wide(self, group: Group) -> list[JobCase]:
        """Return the cases of a group whose medians are not known well enough yet."""
        wide: list[JobCase] = []
        for ref in () if group.first_call else group.refs:
            values: dict[str, list[float]] = {}
            for process in range(self.options.effort.limit):
                record = self.now.get((ref.key, group.replicate(process)))
                if record and record.status == "ok":
                    for stage, value in values_ns(record.stages).items():
                        values.setdefault(stage, []).append(value)
            if values and not all(map(sampling.is_narrow, values.values())):
                wide.append(ref)
        return wide

    def close(self) -> None:
        """Add what there is now to the outcome."""
        if self.options.effort.adaptive:
            self.outcome.wide += [
                f"{name_of(group.workload)} {ref.label}".strip()
                for group in self.groups
                for ref in self.wide(group)
            ]
        records = list(self.now.values())
        self.outcome.records += records
        self.outcome.failed += [r for r in records if r.status in ("failed", "refused")]
        self.outcome.refused += _refused(r for r in records if r.status == "ok")

    def keep(
        self,
        record: Record,
        group: Group,
        ref: JobCase | None,
        process: int,
        hopeless: bool = False,
    ) -> None:
        """Store a record: of a case, or with None of a process or of its reference program."""
        name = record.key, record.replicate
        self._append(record)
        earlier, self.now[name] = self.now.get(name), record
        again = earlier is not None and earlier.process == record.process != ""
        if ref is None or again:  # the same, with what the process has counted at its end
            return
        if record.fingerprint:
            before = self._programs.get(record.key, (record.fingerprint, record.code))
            self._programs[record.key] = record.fingerprint, record.code
            if before[0] != record.fingerprint and not conflicts(record.code, before[1]):
                case = f"{name_of(group.workload)} {ref.label}".strip()
                self.outcome.unexplained = sorted({*self.outcome.unexplained, case})
        if hopeless or record.status == "skipped":
            self.failures[ref.key] = MAX_FAILURES  # another process would say the same
        elif record.status == "failed":
            self.failures[ref.key] = self.failures.get(ref.key, 0) + 1
        self._settle(name)
        if record.status in ("ok", "refused"):
            self.outcome.measured += 1
        self.tell(group, ref.label, record.status, process, record)

    def note_skipped(self, but: Container[str] = ()) -> None:
        """Store a record, with the reason, of each case that is not to be measured.

        Those of the groups named in `but` have theirs elsewhere.
        """
        for group, ref, reason in self.plan.skipped:
            if group.name in but:
                continue
            name = ref.key, group.replicate(0)
            record = self.before.get(name)
            if not record or (record.status, record.reason) != ("skipped", reason):
                record = unmeasured(self.plan.job(group, [ref], 0), ref, "skipped", reason)
                self._append(record)
            self.now[name] = record

    def tell(
        self,
        group: Group,
        case: str,
        stage: str,
        process: int,
        record: Record | None = None,
        warning: str = "",
    ) -> None:
        """Say what is being measured, and how much is done."""
        where = name_of(group.workload), case, stage, process, self.done, self.total
        left_s = self.pace.left_s() if self.pace else None
        self.on_progress(Progress(*where, record, warning=warning, left_s=left_s))


def _refused(records: Iterable[Record]) -> list[Record]:
    """Return those with a refused stage of which no process of the case has a sample."""
    taken = [
        (record, (record.key, name), bool(stage.samples_ns), bool(stage.refused))
        for record in records
        for name, stage in record.stages.items()
    ]
    proven = {row for _, row, samples, _ in taken if samples}
    lacking = {id(one): one for one, row, _, refused in taken if refused and row not in proven}
    return list(lacking.values())


@dataclass
class GroupListener:
    """Enters into the state what becomes of one job."""

    state: SweepState
    group: Group
    """The one that the job is of."""
    process: int

    def __post_init__(self) -> None:
        self._at = "", "", math.inf
        """The case and stage that are measured, and since when."""

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        """Store a record."""
        self.state.keep(record, self.group, ref, self.process, hopeless)

    def tell(self, case: str, stage: str, ref: JobCase | None = None) -> None:
        """Pass on what the process is at."""
        self._at = case, stage, time.monotonic()
        self.state.tell(self.group, case, stage, self.process)

    def check(self) -> None:
        """Say once of a compile that it takes long."""
        case, stage, since = self._at
        if stage == "compile" and time.monotonic() - since > LONG_COMPILE_S:
            self._at = case, stage, math.inf
            warning = f"has been compiling for more than {LONG_COMPILE_S:g} s"
            self.state.tell(self.group, case, stage, self.process, warning=warning)
