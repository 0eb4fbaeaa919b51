"""Drive measuring processes over cases: what is left to do, in which order, and what went wrong.

A sweep hands out units, one workload and one process's share at a time, and appends every record
to the store as soon as it is complete. Two processes that measure at once disturb each other, so
there is one at a time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness import sampling
from harness.declaration import check
from harness.measuring import MAX_FAILURES, Measurer
from harness.plan import Context as Context
from harness.plan import Options as Options
from harness.plan import Plan, Share
from harness.plan import local_context as local_context
from harness.program import kept
from harness.records import Problems, Record, to_raw, values_ns
from harness.unit import Bye, CaseRef
from harness.workload import Case, Workload, name_of


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
        plan = Plan(workloads, context, options)
        self.measurer = Measurer(plan, self.name, self.seed, self.programs, self)
        self.shares = plan.shares
        for share, ref, case, reason in plan.skipped:
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
        if todo:
            self.measurer.measure(share, todo, process)

    # What the measuring processes say

    def keep(self, record: Record, share: Share, ref: CaseRef | None, process: int) -> None:
        """Store a record."""
        self.store.append([record])
        self.now[record.key, record.replicate] = record
        if ref is None:
            return  # the process itself, or the reference program
        self.done += 1
        self.outcome.measured += record.status in ("ok", "refused")
        self._tell(share, share.cases[ref.index].label, record.status, process, record)

    def tell(self, share: Share, case: str, stage: str, process: int) -> None:
        """Pass on what a process is at."""
        self._tell(share, case, stage, process)

    def timed(self, bye: Bye) -> None:
        """Add a process's time up."""
        self.outcome.timed_ns += bye.timed_ns
        self.outcome.wall_ns += bye.wall_ns

    def _skip(self, share: Share, ref: CaseRef, case: Case, reason: str) -> None:
        replicate = f"{share.name}#0"
        earlier = self.before.get((ref.key, replicate))
        if earlier and earlier.status == "skipped" and earlier.reason == reason:
            self.now[ref.key, replicate] = earlier
            return
        record = Record(
            **self.measurer.base(share, replicate),
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
