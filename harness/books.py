"""What a sweep has and lacks: the records from before, those of now, and what went wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness import sampling
from harness.order import Order, Writer
from harness.plan import Context, Options, Plan, Share
from harness.program import kept
from harness.records import Problems, Record, to_raw, values_ns
from harness.unit import Bye, CaseRef
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


class Books:
    """The books of one machine's part of a sweep: what to measure next, and what became of it."""

    def __init__(
        self,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        on_progress: Callable[[Progress], None],
        outcome: Outcome,
    ) -> None:
        self.options = options
        self.on_progress = on_progress
        self.outcome = outcome
        self.store = context.store
        self.store.open()
        seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(31)
        name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{seed}"
        programs = None
        if options.keep_programs:
            programs = kept.folder_of(context.results.resolve(), context.machine)
            kept.open_folder(programs)
        known = self.store.read(outcome.problems)
        self.before = {(r.key, r.replicate): r for r in known}
        self.now: dict[tuple[str, str], Record] = {}
        self.failures: dict[str, int] = {}
        """By the key of a case: how many processes failed at it."""
        plan = Plan(workloads, context, options)
        self.writer = Writer(plan, name, seed, programs)
        self.shares = plan.shares
        self.total = sum(len(share.refs) for share in self.shares) * options.effort.processes
        self.done = 0

    def order(self, share: Share, process: int) -> Order | None:
        """Return what process number `process` of a share has still to measure; None if nothing."""
        wanted = share.refs
        if process >= self.options.effort.processes:
            wanted = self.wide(share)
            self.total += len(wanted)
        replicate = f"{share.name}#{process}"
        todo = []
        for ref in wanted:
            earlier = self.before.get((ref.key, replicate))
            if earlier and earlier.status in ("ok", "refused") and not self.options.fresh:
                self.now[ref.key, replicate] = earlier
                self.outcome.reused += 1
                self.done += 1
            elif self.failures.get(ref.key, 0) >= MAX_FAILURES:
                self.done += 1
            else:
                todo.append(ref)
        return self.writer.order(share, todo, process) if todo else None

    def wide(self, share: Share) -> list[CaseRef]:
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

    def close(self) -> None:
        """Add what there is now to the outcome."""
        if self.options.effort.adaptive:
            self.outcome.wide += [
                f"{name_of(share.workload)} {share.cases[ref.index].label}".strip()
                for share in self.shares
                for ref in self.wide(share)
            ]
        records = list(self.now.values())
        self.outcome.records += records
        self.outcome.failed += [r for r in records if r.status in ("failed", "refused")]

    def keep(
        self,
        record: Record,
        share: Share,
        ref: CaseRef | None,
        process: int,
        hopeless: bool = False,
    ) -> None:
        """Store a record: of a case, or with None of a process or of its reference program."""
        self.store.append([record])
        self.now[record.key, record.replicate] = record
        if ref is None:
            return
        if hopeless or record.status == "skipped":
            self.failures[ref.key] = MAX_FAILURES  # another process would say the same
        elif record.status == "failed":
            self.failures[ref.key] = self.failures.get(ref.key, 0) + 1
        self.done += 1
        self.outcome.measured += record.status in ("ok", "refused")
        self.tell(share, share.cases[ref.index].label, record.status, process, record)

    def note_skipped(self, wanted: Callable[[Share], bool] = lambda share: True) -> None:
        """Store a record, with the reason, of each case that is not to be measured."""
        for share, ref, case, reason in self.writer.plan.skipped:
            if wanted(share):
                self._skip(share, ref, case, reason)

    def _skip(self, share: Share, ref: CaseRef, case: Case, reason: str) -> None:
        replicate = f"{share.name}#0"
        earlier = self.before.get((ref.key, replicate))
        if earlier and earlier.status == "skipped" and earlier.reason == reason:
            self.now[ref.key, replicate] = earlier
            return
        record = Record(
            **self.writer.base(share, replicate),
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

    def tell(
        self, share: Share, case: str, stage: str, process: int, record: Record | None = None
    ) -> None:
        """Say what is being measured, and how much is done."""
        name = name_of(share.workload)
        self.on_progress(Progress(name, case, stage, process, self.done, self.total, record))


@dataclass
class Ear:
    """Enters into the books what becomes of one order."""

    books: Books
    share: Share
    process: int

    def keep(self, record: Record, ref: CaseRef | None, hopeless: bool = False) -> None:
        """Store a record."""
        self.books.keep(record, self.share, ref, self.process, hopeless)

    def tell(self, case: str, stage: str) -> None:
        """Pass on what the process is at."""
        self.books.tell(self.share, case, stage, self.process)

    def check(self) -> None:
        """Let it go on."""

    def timed(self, bye: Bye) -> None:
        """Add a process's time up."""
        self.books.outcome.timed_ns += bye.timed_ns
        self.books.outcome.wall_ns += bye.wall_ns
