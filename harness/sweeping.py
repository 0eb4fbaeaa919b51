"""Drive measuring processes over cases: what is left to do, in which order, and what went wrong.

A sweep hands out units, one workload and one process's share at a time, and appends every record
to the store as soon as it is complete. Two processes that measure at once disturb each other, so
there is one at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness import environment, sampling
from harness.baselines.variables import variables
from harness.board import Visit
from harness.declaration import check
from harness.plan import Context as Context
from harness.plan import Options as Options
from harness.plan import Plan, Share
from harness.plan import local_context as local_context
from harness.process import Ending, converse
from harness.program import kept
from harness.records import SCHEMA, Problems, Record, to_raw, values_ns
from harness.unit import CaseRef, Done, Hello, Message, Unit
from harness.workload import Case, Workload, name_of

MAX_FAILURES = 2
"""A case that failed in this many processes is left alone: it is a defect, not an accident."""


@dataclass
class Progress:
    """What a sweep is at: told after every message of a measuring process."""

    workload: str
    case: str
    stage: str
    process: int
    done: int
    total: int
    record: Record | None = None
    """A record that was just stored."""


@dataclass
class Outcome:
    """What a sweep did."""

    records: list[Record] = field(default_factory=list)
    """Every record that answers for what was asked, measured now or before."""
    measured: int = 0
    reused: int = 0
    failed: list[Record] = field(default_factory=list)
    wide: list[str] = field(default_factory=list)
    """Cases whose interval stayed too wide when `thorough` reached its limit."""
    problems: Problems = field(default_factory=Problems)
    timed_ns: float = 0.0
    wall_ns: float = 0.0


def sweep(
    workloads: Sequence[type[Workload]],
    context: Context,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Measure every case of `workloads`, one process at a time, and return what there is then.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        StoreError: the results folder cannot take records; those before are kept.
    """
    for workload in workloads:
        check(workload)
    return _Sweep(workloads, context, options, on_progress).run()


class _Sweep:
    def __init__(
        self,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.context = context
        self.options = options
        self.on_progress = on_progress
        self.store = context.store
        self.outcome = Outcome()
        self.seed = (
            options.seed if options.seed is not None else random.SystemRandom().getrandbits(31)
        )
        self.name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{self.seed}"
        self.store.open()
        self.programs = kept.folder_of(context.results.resolve(), context.machine)
        if options.keep_programs:
            kept.open_folder(self.programs)
        known = self.store.read(self.outcome.problems)
        self.before = {(r.key, r.replicate): r for r in known}
        self.now: dict[tuple[str, str], Record] = {}
        self.plan = Plan(workloads, context, options)
        self.shares = self.plan.shares
        for share, ref, case, reason in self.plan.skipped:
            self._skip(share, ref, case, reason)
        self.total = sum(len(share.refs) for share in self.shares) * options.effort.processes
        self.done = 0

    def run(self) -> Outcome:
        effort = self.options.effort
        for process in range(effort.limit):
            adding = process >= effort.processes
            for share in self.shares:
                wanted = self._wide(share) if adding else share.refs
                if adding:
                    self.total += len(wanted)
                self._measure_share(share, wanted, process)
        self.outcome.wide = [
            f"{name_of(share.workload)} {share.cases[ref.index].label}".strip()
            for share in self.shares
            if effort.adaptive
            for ref in self._wide(share)
        ]
        self.outcome.records = list(self.now.values())
        self.outcome.failed = [r for r in self.outcome.records if r.status in ("failed", "refused")]
        return self.outcome

    def _wide(self, share: Share) -> list[CaseRef]:
        """Return the cases of a share whose medians are not known well enough yet."""
        wide = []
        for ref in share.refs:
            values: dict[str, list[float]] = {}
            for (key, _), record in self.now.items():
                if key == ref.key and record.status == "ok":
                    for stage, value in values_ns(record.stages).items():
                        values.setdefault(stage, []).append(value)
            if values and not all(map(sampling.is_narrow, values.values())):
                wide.append(ref)
        return wide

    # Doing it

    def _measure_share(self, share: Share, wanted: Sequence[CaseRef], process: int) -> None:
        replicate = f"{share.name}#{process}"
        todo = []
        for ref in wanted:
            earlier = self.before.get((ref.key, replicate))
            if earlier and earlier.status in ("ok", "refused") and not self.options.fresh:
                self.now[ref.key, replicate] = earlier
                self.outcome.reused += 1
                self.done += 1
            elif share.failures.get(ref.index, 0) >= MAX_FAILURES:
                self.done += 1
            else:
                todo.append(ref)
        if share.scenario == "off":
            while todo:
                todo = self._measure(share, todo, process, replicate, "")
        elif todo:
            with tempfile.TemporaryDirectory() as scratch:
                self._measure_cached(share, todo, process, replicate, Path(scratch))

    def _measure_cached(
        self, share: Share, todo: list[CaseRef], process: int, replicate: str, scratch: Path
    ) -> None:
        """Measure with a persistent cache: `cold` in an empty directory, others in a filled one."""
        attempts = itertools.count()

        def empty() -> str:
            folder = scratch / str(next(attempts))
            folder.mkdir()
            return str(folder)

        folder = empty()
        if share.scenario != "cold":
            # CuPy's cache is filled by first calls, which is all that `warm` makes.
            scenario = "cold" if share.scenario == "warm" and not share.backend else share.scenario
            filler = dataclasses.replace(share, scenario=scenario, failures={})
            filled: dict[int, str] = {}
            left = todo
            while left:
                left = self._measure(filler, left, process, replicate, folder, filled)
            # What was put in, so that an entry that holds another program is noticed.
            todo = [
                msgspec.structs.replace(ref, fingerprint=filled.get(ref.index, "")) for ref in todo
            ]
        while todo:
            todo = self._measure(share, todo, process, replicate, folder)
            if share.scenario == "cold":
                folder = empty()  # a process that died may have written some of the others' entries

    def _measure(
        self,
        share: Share,
        todo: list[CaseRef],
        process: int,
        replicate: str,
        cache: str,
        filled: dict[int, str] | None = None,
    ) -> list[CaseRef]:
        """Run one process over `todo`; return what is left because the process did not survive.

        `cache` is the directory of the persistent cache. With `filled`, the process only fills
        that: no record is stored, and `filled` takes the fingerprint of each case's program.
        """
        refs = {ref.index: ref for ref in todo}
        by_key = {ref.key: ref for ref in todo}
        hello: list[Hello] = []

        def on_message(message: Message) -> None:
            if isinstance(message, Hello):
                hello.append(message)
            elif isinstance(message, Done):
                ref = by_key.get(message.record.key)
                if filled is None:
                    self._keep(message.record, share, ref, process)
                elif ref:
                    filled[ref.index] = message.record.fingerprint
                if ref:
                    refs.pop(ref.index)

        def on_visit(visit: Visit) -> None:
            case = share.cases.get(visit.case)
            label = case.label if case else "(the reference program)"
            self._tell(share, label, visit.stage, process)

        unit = self._unit(share, todo, replicate, cache)
        if filled is not None:
            unit.passes = 1  # the first one fills the directory
        timeout = self.options.timeout_s or share.workload.timeout_s
        self._tell(share, f"{len(todo)} cases", "start", process)
        ending = converse(unit, on_message, on_visit, timeout, self.options.memory_limit_bytes)
        if ending.bye:
            self.outcome.timed_ns += ending.bye.timed_ns
            self.outcome.wall_ns += ending.bye.wall_ns
        if not ending.reason:
            return []
        culprit = refs.get(ending.visit.case) if ending.visit else None
        if ending.visit and ending.visit.case in share.cases and not culprit:
            return list(refs.values())  # it died after the record of its last case: no one's fault
        for ref in [culprit] if culprit else list(refs.values()):
            if ending.hopeless:
                share.failures[ref.index] = MAX_FAILURES
            if filled is None:
                record = self._failure(share, ref, replicate, unit, ending, hello)
                self._keep(record, share, ref, process)
            refs.pop(ref.index)
        return list(refs.values())

    def _unit(self, share: Share, todo: list[CaseRef], replicate: str, cache: str) -> Unit:
        target = share.place
        return Unit(
            source=share.source,
            target=target.name,
            description=target.description,
            # JAX is kept from the device that CuPy computes on.
            platforms=target.platforms if share.backend in ("", "xla") else "cpu",
            environment={
                **target.environment,
                **variables(share.backend, share.threads, share.precision, cache),
            },
            backend=share.backend,
            threads=share.threads,
            cpu_devices=share.cpu_devices,
            x64=share.workload.x64,
            cases=todo,
            passes=self.options.effort.passes,
            seed=random.Random(f"{self.seed}/{replicate}").getrandbits(31),
            process_key=self.plan.instrument_key("process", share),
            reference_key=self.plan.instrument_key("reference", share),
            scenario=share.scenario,
            cache_folder=cache,
            programs=str(self.programs) if self.options.keep_programs else "",
            base=self._base(share, replicate),
        )

    def _base(self, share: Share, replicate: str) -> dict[str, Any]:
        commit = self.context.commit
        return {
            "schema": SCHEMA,
            "replicate": replicate,
            "workload": name_of(share.workload),
            "version": share.version,
            "static": list(share.workload.static),
            "target": share.target,
            "scenario": share.scenario,
            "machine": self.context.machine,
            "env": self.context.env,
            "commit": commit.hash,
            "commit_date_ms": commit.date_ms,
            "dirty": commit.dirty,
            "night": self.context.night,
            "protocol": self.options.protocol,
            "effort": self.options.effort.name,
            "sweep": self.name,
            "seed": self.seed,
            **environment.versions(),
        }

    def _keep(self, record: Record, share: Share, ref: CaseRef | None, process: int) -> None:
        self.store.append([record])
        self.now[record.key, record.replicate] = record
        if ref is None:
            return  # the process itself, or the reference program
        self.done += 1
        self.outcome.measured += record.status in ("ok", "refused")
        if record.status == "failed":
            share.failures[ref.index] = share.failures.get(ref.index, 0) + 1
        elif record.status == "skipped":
            share.failures[ref.index] = MAX_FAILURES  # another process would say the same
        self._tell(share, share.cases[ref.index].label, record.status, process, record)

    def _failure(
        self,
        share: Share,
        ref: CaseRef,
        replicate: str,
        unit: Unit,
        ending: Ending,
        hello: list[Hello],
    ) -> Record:
        case = share.cases[ref.index]
        return Record(
            **unit.base,
            key=ref.key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=share.comparison,
            status="failed",
            reason=ending.reason,
            stderr=ending.stderr,
            started_at_ms=time.time_ns() // 1_000_000,
            environment=hello[0].environment if hello else to_raw({}),
            load_average=hello[0].load_average if hello else [],
        )

    def _skip(self, share: Share, ref: CaseRef, case: Case, reason: str) -> None:
        replicate = f"{share.name}#0"
        earlier = self.before.get((ref.key, replicate))
        if earlier and earlier.status == "skipped" and earlier.reason == reason:
            self.now[ref.key, replicate] = earlier
            return
        record = Record(
            **self._base(share, replicate),
            key=ref.key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=share.comparison,
            status="skipped",
            reason=reason,
            started_at_ms=time.time_ns() // 1_000_000,
            environment=to_raw({}),
        )
        self.store.append([record])
        self.now[ref.key, replicate] = record

    def _tell(
        self, share: Share, case: str, stage: str, process: int, record: Record | None = None
    ) -> None:
        name = name_of(share.workload)
        self.on_progress(Progress(name, case, stage, process, self.done, self.total, record))
