"""Where the wall time went: parts that add up to it, of the run, each process and each thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from harness.profiles.intervals import Nanoseconds, share
from harness.profiles.pieces import OTHER, STAGES
from harness.watch import events

if TYPE_CHECKING:
    from harness.profiles.model import Process
    from harness.profiles.recorded import Recorded

SAMPLED = ("jax", "library", "program")
"""Where the program was outside builds, by whose code was innermost."""

PARTS = {
    "python": "from the start of the process until recording began",
    "import": "`import jax`",
    "backend": "JAX made its backends",
    "trace": "Python functions became jaxprs",
    "lower": "jaxprs became StableHLO",
    "compile": "StableHLO became programs, in XLA",
    "load": "programs came from the persistent cache",
    "write": "programs were written to the persistent cache",
    "other": "the rest of calls that built: arguments, dispatch, the first run until it returned",
    "profile": "the profile's own cost",
    "jax": "outside builds, in JAX: dispatch, waiting for results (sampled)",
    "library": "outside builds, in libraries and Python's own modules (sampled)",
    "program": "outside builds, in the program's own code (sampled)",
    "end": "from the end of recording until the process was gone",
    "unattributed": "nothing recorded says what it was",
}
"""The parts of a total, in the order in which they are shown, and what each one is."""

_KINDS = ("import", "backend", *STAGES, OTHER)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


@dataclass(frozen=True)
class Total:
    """The wall time of one run, process or thread, and its parts."""

    scope: Literal["run", "process", "thread"]
    process: str
    """Empty for a run."""
    thread: int
    """0 for a run or process."""
    begin_ns: int
    end_ns: int
    seconds: dict[str, float]
    """Of every part of :data:`PARTS`; none is negative, and their sum is the wall time."""
    samples: dict[str, int] = field(default_factory=dict)
    """What :data:`SAMPLED` parts rest on."""
    cut_off: bool = False
    """The log has no end: the total reaches until its last line."""
    main: bool = False
    """Of a thread: it is the main one."""

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

        Clopper and Pearson's interval of the share of samples, times the seconds that all samples
        stand for. It takes samples as independent; those of one long wait are not.
        """
        from scipy.special import betaincinv  # long to import, and seldom needed

        value, n = self.seconds[part], sum(self.samples.values())
        if part not in SAMPLED or not n:
            return value, value
        k = self.samples.get(part, 0)
        low = float(betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
        return min(value, low * self.outside_s), max(value, high * self.outside_s)


def totals(profile: Recorded) -> Iterator[Total]:
    """Yield the total of the run, then of each process, each followed by those of its threads."""
    if not profile.processes:
        return
    busy = {process: _busy(process) for process in profile.processes}
    yield _run_total(profile, busy)
    for process in profile.processes:
        yield _process_total(profile, process, busy[process])
        yield from _thread_totals(profile, process, busy[process])


def _busy(process: Process) -> Nanoseconds:
    """Return the intervals of a process: their kinds, begins, ends, threads; shape (4, n)."""
    rows: list[tuple[int, int, int, int]] = []
    for line in process.of(events.Import):
        rows.append((_NUMBER["import"], line.begin_ns, line.end_ns, line.thread))
    for backend in process.of(events.Backend):
        rows.append((_NUMBER["backend"], backend.begin_ns, backend.end_ns, backend.thread))
    for built in (*process.builds, *process.unfinished):
        for stage, begin_ns, end_ns in built.pieces:
            rows.append((_NUMBER[stage], begin_ns, end_ns, built.line.thread))
    return np.array(rows, dtype=np.int64).reshape(len(rows), 4).T


class _Segment(NamedTuple):
    """A part of the time of a total, in which one process was recorded, and may be sampled."""

    process: Process
    begin_ns: int
    end_ns: int


def _run_total(profile: Recorded, busy: dict[Process, Nanoseconds]) -> Total:
    run = profile.run
    begin = profile.begin_ns
    ends = [process.end_ns for process in profile.processes]
    end = max(begin, run.end_ns if run is not None and run.end_ns else max(ends))
    mine = [process for process in profile.processes if run and process.started.pid == run.pid]
    segments = []
    at = begin
    for process in mine or profile.processes[:1]:
        # What came before the process's own start is the way to it, if the run waited for that.
        first = at if mine else max(at, process.begin_ns)
        segments.append(_Segment(process, first, process.end_ns))
        at = max(at, process.end_ns)
    last = segments[-1]
    if run is not None and mine and last.process.ended is not None:
        segments[-1] = _Segment(last.process, last.begin_ns, end)
    cut_off = any(process.ended is None for process in profile.processes)
    parts = np.concatenate(list(busy.values()), axis=1)
    own_ns = sum(_own_ns(process) for process in profile.processes)
    return _total(("run", "", 0), (begin, end), parts, segments, None, own_ns, cut_off)


def _process_total(profile: Recorded, process: Process, busy: Nanoseconds) -> Total:
    run, end = profile.run, process.end_ns
    if run is not None and run.pid == process.started.pid and process.ended is not None:
        end = max(end, run.end_ns) if process.ended.why == "exit" else end
    return _total(
        ("process", process.name, 0),
        (process.begin_ns, end),
        busy,
        [_Segment(process, process.begin_ns, end)],
        None,
        _own_ns(process),
        process.ended is None,
    )


def _thread_totals(profile: Recorded, process: Process, busy: Nanoseconds) -> Iterator[Total]:
    seen: dict[int, list[int]] = {}
    for line, begin in _windows(process):
        for thread, *_ in line.counts:
            seen.setdefault(thread, []).extend((begin, line.at_ns))
    building, first = np.unique(busy[3], return_index=True)
    for thread, at_ns in zip(building.tolist(), busy[1][first].tolist(), strict=True):
        seen.setdefault(thread, []).append(at_ns)
    for thread, times in sorted(seen.items(), key=lambda item: min(item[1])):
        parts = busy[:, busy[3] == thread]
        main = thread == process.started.main_thread
        begin, end = min([*times, *parts[1].tolist()]), max([*times, *parts[2].tolist()])
        if main:
            begin, end = process.begin_ns, process.end_ns
        begin, end = max(begin, process.begin_ns), min(end, process.end_ns)
        yield _total(
            ("thread", process.name, thread),
            (begin, max(begin, end)),
            parts,
            [_Segment(process, begin, max(begin, end))],
            thread,
            _own_ns(process, thread),
            process.ended is None,
            main,
        )


def _own_ns(process: Process, thread: int | None = None) -> int:
    """Return what the profile cost, as far as it knows."""
    builds = process.of(events.Build)
    if thread is not None:
        return sum(line.own_ns for line in builds if line.thread == thread)
    own_ns = sum(line.own_ns for line in builds)
    return own_ns if process.ended is None else max(own_ns, process.ended.own_ns)


def _total(
    of: tuple[Literal["run", "process", "thread"], str, int],
    when: tuple[int, int],
    busy: Nanoseconds,
    segments: Sequence[_Segment],
    thread: int | None,
    own_ns: int,
    cut_off: bool,
    main: bool = False,
) -> Total:
    begin, end = when
    shared = share(busy[0], busy[1], busy[2], len(_KINDS), begin, end)
    seconds = dict.fromkeys(PARTS, 0.0)
    for kind, number in _NUMBER.items():
        seconds[kind] = float(shared.seconds[number])
    samples: Counter[str] = Counter()
    for segment in segments:
        process = segment.process
        first, last = max(begin, segment.begin_ns), min(end, segment.end_ns)
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
                samples.update(counts)
            n = sum(counts.values())
            for whose, count in counts.items():
                seconds[whose] += idle_s * count / n
    known = sum(seconds.values())
    seconds["unattributed"] = max(0.0, (end - begin) / 1e9 - known)
    _take(seconds, own_ns / 1e9)
    return Total(*of, begin, end, seconds, dict(samples), cut_off, main)


def _windows(process: Process) -> Iterator[tuple[events.Samples, int]]:
    """Yield the samples, each with the moment from which on they were taken."""
    since = process.started.clock_ns
    for line in process.of(events.Samples):
        yield line, since
        since = max(since, line.at_ns)


def _counts(line: events.Samples, thread: int | None) -> Counter[str]:
    found: Counter[str] = Counter()
    for of, _, whose, count in line.counts:
        if whose in SAMPLED and count > 0 and (thread is None or of == thread):
            found[whose] += count
    return found


def _take(seconds: dict[str, float], own_s: float) -> None:
    """Move the profile's cost out of the time outside builds, in proportion.

    Where in it the cost lay is not recorded; most of it follows a build.
    """
    parts = (*SAMPLED, "unattributed")
    there = sum(seconds[part] for part in parts)
    own_s = min(own_s, there)
    if own_s <= 0:
        return
    for part in parts:
        seconds[part] *= 1 - own_s / there
    seconds["profile"] += own_s
