"""Where the wall time went: parts that add up to it, of the run, each process and each thread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from harness.jaxhooks import events
from harness.profiles.model import Process
from harness.profiles.pieces import OTHER, STAGES
from harness.profiles.tracks import starts

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

Nanoseconds = npt.NDArray[np.int64]

SAMPLED = ("jax", "library", "program")
"""Where the program was outside builds, by whose code was innermost."""

_BEFORE, _AFTER = ("python", "import", "backend"), ("end", "unattributed")
PARTS = (*_BEFORE, *STAGES, OTHER, "profile", *SAMPLED, *_AFTER)
"""The parts of a total, in the order in which they are shown."""

_KINDS = ("import", "backend", *STAGES, OTHER)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


@dataclass
class Total:
    """The wall time of one run, process or thread, and its parts."""

    scope: Literal["run", "process", "thread"]
    process: str
    """Empty for a run."""
    thread: int
    """0 for a run or process."""
    begin_ns: int
    end_ns: int
    main: bool = False
    """Of a thread: it is the main one."""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    """Of every part of :data:`PARTS`; none is negative, and their sum is the wall time."""
    samples: Counter[str] = field(default_factory=Counter)
    """What :data:`SAMPLED` parts rest on."""

    @property
    def wall_s(self) -> float:
        """From begin to end."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def build_s(self) -> float:
        """Of it, what went into tracing, lowering, compiling, loading and writing."""
        return sum(self.seconds[stage] for stage in STAGES)

    @property
    def outside_s(self) -> float:
        """Of it, what the program itself took outside builds, as far as it was sampled."""
        return sum(self.seconds[part] for part in SAMPLED)

    def interval(self, part: str) -> tuple[float, float]:
        """Return the 95 % interval of a part's seconds; both ends are its seconds unless sampled.

        Wilson's interval of the share of samples (E. B. Wilson, JASA 22 (1927) 209-212), times the
        seconds that all samples stand for. It takes samples as independent; those of one long wait
        are not.
        """
        value, n = self.seconds[part], sum(self.samples.values())
        if part not in SAMPLED or not n:
            return value, value
        share, z = self.samples.get(part, 0) / n, NormalDist().inv_cdf(0.975)
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) * z / (1 + z * z / n)
        low, high = (max(0.0, middle - half), min(1.0, middle + half))
        return min(value, low * self.outside_s), max(value, high * self.outside_s)


def totals(profile: Recorded) -> Iterator[Total]:
    """Yield the total of the run, then of each process, each followed by those of its threads."""
    if not profile.processes:
        return
    busy = {process: _busy(process) for process in profile.processes}
    yield _run_total(profile, busy)
    run = profile.run
    for process in profile.processes:
        begin, end, ended = process.begin_ns, process.end_ns, process.ended
        if run is not None and run.pid == process.started.pid and ended and ended.why == "exit":
            end = max(end, run.end_ns)
        total = Total("process", process.name, 0, begin, end)
        _fill(total, busy[process], [(process, begin, end)])
        yield _less_own(total, _own_ns(process))
        yield from _thread_totals(process, busy[process])


def _busy(process: Process) -> Nanoseconds:
    """Return the intervals of a process: their kinds, begins, ends, threads; shape (4, n)."""
    rows: list[tuple[int, int, int, int]] = []
    for line, part, *_ in starts(process):
        rows.append((_NUMBER[part], line.begin_ns, line.end_ns, line.thread))
    for built in (*process.builds, *process.unfinished):
        for stage, begin_ns, end_ns in built.pieces:
            rows.append((_NUMBER[stage], begin_ns, end_ns, built.line.thread))
    return np.array(rows, dtype=np.int64).reshape(len(rows), 4).T


_Segment = tuple[Process, int, int]
"""A part of the time of a total, in which one process was recorded, and may be sampled."""


def _run_total(profile: Recorded, busy: dict[Process, Nanoseconds]) -> Total:
    run, processes = profile.run, profile.processes
    begin = at = profile.begin_ns
    last_ns = run.end_ns if run is not None else 0
    end = max(begin, last_ns or max(process.end_ns for process in processes))
    mine = [process for process in processes if run and process.started.pid == run.pid]
    segments = []
    for process in mine or processes[:1]:
        # What came before the process's own start is the way to it, if the run waited for that.
        segments.append((process, at if mine else max(at, process.begin_ns), process.end_ns))
        at = max(at, process.end_ns)
    process, first, _ = segments[-1]
    if mine and process.ended is not None:
        segments[-1] = process, first, end
    total = Total("run", "", 0, begin, end)
    _fill(total, np.concatenate(list(busy.values()), axis=1), segments)
    return _less_own(total, sum(map(_own_ns, processes)))


def _thread_totals(process: Process, busy: Nanoseconds) -> Iterator[Total]:
    seen: dict[int, list[int]] = {}
    for line, begin in _windows(process):
        for thread, *_ in line.counts:
            seen.setdefault(thread, []).extend((begin, line.at_ns))
    for begin, end, thread in busy[1:].T.tolist():
        seen.setdefault(thread, []).extend((begin, end))
    for thread, times in sorted(seen.items(), key=lambda item: min(item[1])):
        main = thread == process.started.main_thread
        if main:
            times = [process.begin_ns, process.end_ns]
        begin, end = max(min(times), process.begin_ns), min(max(times), process.end_ns)
        end = max(begin, end)
        total = Total("thread", process.name, thread, begin, end, main)
        _fill(total, busy[:, busy[3] == thread], [(process, begin, end)], thread)
        yield _less_own(total, _own_ns(process, thread))


def _own_ns(process: Process, thread: int | None = None) -> int:
    builds = process.of(events.Build)
    if thread is not None:
        return sum(line.own_ns for line in builds if line.thread == thread)
    own_ns = sum(line.own_ns for line in builds)
    return own_ns if process.ended is None else max(own_ns, process.ended.own_ns)


def _fill(
    total: Total, busy: Nanoseconds, segments: Sequence[_Segment], thread: int | None = None
) -> None:
    """Find the parts of a total, of what threads were busy with and of samples of the rest."""
    begin, end, seconds = total.begin_ns, total.end_ns, total.seconds
    shared = share(busy[0], busy[1], busy[2], len(_KINDS), begin, end)
    for kind, number in _NUMBER.items():
        seconds[kind] = float(shared.seconds[number])
    for process, first, last in segments:
        first, last = max(begin, first), min(end, last)
        recorded = max(first, process.started.clock_ns)
        seconds["python"] += shared.idle_s(first, min(recorded, last))
        if process.ended is not None:
            seconds["end"] += shared.idle_s(max(recorded, process.ended.at_ns), last)
            last = min(last, process.ended.at_ns)
        for line, since in _windows(process):
            idle_s = shared.idle_s(max(first, since), min(last, line.at_ns))
            counts = _counts(line, process.started.main_thread if thread is None else thread)
            if not counts and thread is None:
                counts = _counts(line, None)
            if idle_s > 0:
                total.samples.update(counts)
            for whose, count in counts.items():
                seconds[whose] += idle_s * count / counts.total()
    seconds["unattributed"] = max(0.0, (end - begin) / 1e9 - sum(seconds.values()))


def _windows(process: Process) -> Iterator[tuple[events.Samples, int]]:
    """Yield the samples, each with the moment from which on they were taken."""
    since = process.started.clock_ns
    for line in process.of(events.Samples):
        yield line, since
        since = max(since, line.at_ns)


def _counts(line: events.Samples, thread: int | None) -> Counter[str]:
    totals: Counter[str] = Counter()
    for of, _, whose, count in line.counts:
        if whose in SAMPLED and count > 0 and (thread is None or of == thread):
            totals[whose] += count
    return totals


def _less_own(total: Total, own_ns: int) -> Total:
    """Move the profile's cost out of the time outside builds, in proportion.

    Where in it the cost lay is not recorded; most of it follows a build.
    """
    parts, seconds = (*SAMPLED, "unattributed"), total.seconds
    there = sum(seconds[part] for part in parts)
    own_s = min(own_ns / 1e9, there)
    if own_s > 0:
        for part in parts:
            seconds[part] *= 1 - own_s / there
        seconds["profile"] += own_s
    return total


@dataclass(frozen=True)
class Shared:
    """How a stretch of time divides among kinds of intervals."""

    seconds: npt.NDArray[np.float64]
    """Of each kind. Where several intervals cover a moment, each has an equal part of it."""
    begin_ns: int
    _times: npt.NDArray[np.float64]
    _idle: npt.NDArray[np.float64]

    def idle_s(self, begin_ns: int, end_ns: int) -> float:
        """Return the seconds between two moments that no interval covers."""
        if end_ns <= begin_ns:
            return 0.0
        moments = [begin_ns - self.begin_ns, end_ns - self.begin_ns]
        before, after = np.interp(moments, self._times, self._idle)
        return float(after - before) / 1e9


def share(
    kinds: Nanoseconds, begins: Nanoseconds, ends: Nanoseconds, n_kinds: int, begin: int, end: int
) -> Shared:
    """Divide the time from `begin` to `end` among intervals, by a sweep over their ends.

    The union of the intervals is counted once: the seconds of all kinds, and the idle ones, add up
    to the whole.

    Args:
        kinds: what each interval is, 0 to `n_kinds` - 1; shape (n,).
        begins: nanoseconds, shape (n,); what lies outside is cut off.
        ends: nanoseconds, shape (n,).
        n_kinds: how many kinds there are.
        begin: of the whole, nanoseconds.
        end: of the whole.
    """
    begins, ends = (np.clip(times, begin, max(begin, end)) - begin for times in (begins, ends))
    kept = ends > begins
    kinds, begins, ends = kinds[kept], begins[kept], ends[kept]
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    times = times[order].astype(np.float64)
    steps = np.repeat(np.array([1, -1]), len(begins))[order]
    kind_of = np.concatenate([kinds, kinds])[order]
    whole = float(max(0, end - begin))
    edges = np.concatenate([[0.0], times, [whole]])
    lengths = np.diff(edges)  # lengths[i] is what precedes times[i]
    active = np.concatenate([[0], np.cumsum(steps)])
    part = np.where(active > 0, lengths / np.maximum(active, 1), 0.0)
    seconds = np.zeros(n_kinds)
    for kind in np.unique(kind_of):
        count = np.concatenate([[0], np.cumsum(np.where(kind_of == kind, steps, 0))])
        seconds[kind] = float(count @ part) / 1e9
    idle = np.concatenate([[0.0], np.cumsum(np.where(active == 0, lengths, 0.0))])
    return Shared(seconds, begin, edges, idle)
