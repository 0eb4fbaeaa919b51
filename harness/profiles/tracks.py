"""A profile's processes and threads on one clock, and as a trace that Perfetto opens.

The trace is in Google's Trace Event Format, its JSON object form: complete events (`X`) for builds
and their stages, instant events (`i`) for what the persistent cache answered and for emptied
caches, metadata (`M`) for names. Times are microseconds since the profile began.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.jaxhooks.events import Backend, Cleared, Import, Request
from harness.profiles.names import program_of
from harness.records.files import replaced

if TYPE_CHECKING:
    from harness.profiles.model import Built, Process
    from harness.profiles.recorded import Recorded

LONGEST = 300
"""Characters of one text in an event."""


class Clock:
    """Nanoseconds since a profile began, whatever machine a process ran on.

    Processes of one machine share a clock. Those of others are placed by the calendar, as exactly
    as the machines' calendars agree.
    """

    def __init__(self, profile: Recorded) -> None:
        self._shifts: dict[str, int] = {}
        for process in profile.processes:
            line = process.started
            self._shifts.setdefault(line.host, round(line.at_s * 1e9) - line.clock_ns)
        first = profile.processes[0].started.host if profile.processes else ""
        base = self._shifts.get(first, 0)
        self._shifts = {host: shift - base for host, shift in self._shifts.items()}
        begins = [self._placed(process, process.begin_ns) for process in profile.processes]
        ends = [self._placed(process, process.end_ns) for process in profile.processes]
        if profile.run is not None:
            begins.append(profile.run.begin_ns)
            ends.append(profile.run.end_ns)
        self.origin_ns = min(begins, default=0)
        self.length_ns = max(max(ends, default=0) - self.origin_ns, 1)
        """From the first to the last thing known."""

    def _placed(self, process: Process, at_ns: int) -> int:
        return at_ns + self._shifts[process.started.host]

    def at(self, process: Process, at_ns: int) -> int:
        """Return a time of a process, in nanoseconds since the profile began."""
        return self._placed(process, at_ns) - self.origin_ns


def process_names(profile: Recorded) -> dict[str, str]:
    """Return what each process is called, by its name: `train.py[4711]`."""
    names: dict[str, str] = {}
    times: Counter[str] = Counter()
    for process in profile.processes:
        line = process.started
        program = program_of(line.argv).removeprefix("-m ")
        name = f"{'python' if program == '' or program.startswith('-') else program}[{line.pid}]"
        times[name] += 1
        # One that another program took the place of (`os.execv`), or that recorded twice.
        names[process.name] = f"{name}#{times[name]}" if times[name] > 1 else name
    return names


def thread_names(process: Process) -> dict[int, str]:
    """Return what each thread is called, by its number: `main`, then in order of appearance."""
    names = {process.started.main_thread: "main"}
    for line in process.lines:
        thread = getattr(line, "thread", None)
        if thread is not None and thread not in names:
            names[thread] = f"thread {len(names)}"
    return names


def starts(process: Process) -> Iterator[tuple[Import | Backend, str, str, dict[str, str]]]:
    """Yield what a process took before it could build: the line, its part, its name, and more."""
    for jax in process.of(Import):
        yield jax, "import", "import jax", jax.versions
    for woken in process.of(Backend):
        about = {"platform": woken.platform, "devices": ", ".join(woken.devices)}
        yield woken, "backend", woken.platform, about


def cleared(process: Process) -> Iterator[tuple[Cleared, str]]:
    """Yield the caches that were emptied and whose, but for what JAX does when Python ends."""
    for line in process.of(Cleared):
        stack, function = process.stacks.get(line.stack), process.functions.get(line.function)
        if stack is not None and stack.frames:
            yield line, function.name if function else line.what


_OUTCOMES = {
    "hit": "hit",
    "written": "miss, written",
    "unwritten": "miss, not written",
    "failed": "failed",
}


def answers(built: Built) -> Iterator[tuple[Request, str]]:
    """Yield the requests that the persistent cache was asked, and what it answered."""
    for request in built.line.requests:
        if request.directory:
            yield request, _OUTCOMES.get(request.outcome, request.outcome)


def answered_ns(built: Built) -> int:
    """Return when the persistent cache had answered, by the process's clock."""
    ends = [span.end_ns for span in built.line.spans if span.stage == "compile"]
    return max(ends, default=built.line.end_ns)


def outcome(built: Built) -> str:
    """Return how the persistent cache answered a build, empty where it was not asked."""
    texts = Counter(text for _, text in answers(built))
    if texts.total() == 1:
        return next(iter(texts))
    return ", ".join(f"{count} × {text}" for text, count in texts.items())


def cause_texts(built: Built, profile: Recorded) -> tuple[str, str]:
    """Return a build's cause and the argument it is about, both empty for an unfinished one."""
    if built.going_on:
        return "", ""
    cause = profile.cause_of(built)
    return cause.kind, cause.argument


class Slice(NamedTuple):
    """Something that took a thread's time."""

    begin_ns: int
    end_ns: int
    name: str
    kind: str
    about: dict[str, Any]


def nested(slices: Iterable[Slice]) -> list[Slice]:
    """Return slices of one thread by their beginning, each wholly inside or outside any other.

    One that would end after the slice it began in ends with that slice: viewers refuse overlaps,
    and the ends of two that were noted one after the other can be in either order.
    """
    nested_slices: list[Slice] = []
    around: list[Slice] = []
    for one in sorted(slices, key=lambda one: (one.begin_ns, -one.end_ns)):
        while around and around[-1].end_ns <= one.begin_ns:
            around.pop()
        if around and one.end_ns > around[-1].end_ns:
            one = one._replace(end_ns=around[-1].end_ns)
        one = one._replace(end_ns=max(one.begin_ns, one.end_ns))
        nested_slices.append(one)
        around.append(one)
    return nested_slices


def save(made: dict[str, Any], output: Path, remedy: str = "Choose another place with -o.") -> int:
    """Write what a trace file holds, packed if the name ends in `.gz`; return its events.

    Raises:
        StoreError: the file cannot be written; `remedy` is what the error advises.
    """
    line = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    text = line.encode("utf-8", "backslashreplace")
    with replaced(output, "wb", remedy) as handle:
        handle.write(gzip.compress(text, 6, mtime=0) if output.suffix == ".gz" else text)
    return len(made["traceEvents"])


def trace_of(profile: Recorded) -> dict[str, Any]:
    """Return a profile as the object that a trace file holds."""
    clock, names = Clock(profile), process_names(profile)
    # Numbers of processes and threads: small, and no number twice, as Perfetto wants them.
    pids = [process.started.pid for process in profile.processes]
    others = itertools.count(max(pids, default=0) + 2)
    rows: list[dict[str, Any]] = []
    for order, process in enumerate(profile.processes):
        pid = next(others) if process.started.pid in pids[:order] else process.started.pid
        track = _Track(profile, process, clock, pid, others)
        rows += [*track.metadata(names[process.name], order), *track.slices(), *track.moments()]
    run = profile.run
    about = {"command": " ".join(run.command), "exit_code": run.exit_code} if run else {}
    other = {"tool": "harness", **about}
    return {"traceEvents": rows, "displayTimeUnit": "ms", "otherData": other}


class _Track:
    """Makes events of one process."""

    def __init__(
        self, profile: Recorded, process: Process, clock: Clock, pid: int, others: Iterator[int]
    ) -> None:
        self._profile, self._process, self._clock, self._pid = profile, process, clock, pid
        self._builds = [*process.builds, *process.unfinished]
        self._names, main = thread_names(process), process.started.main_thread
        self._tids = {thread: pid if thread == main else next(others) for thread in self._names}

    def _event(self, phase: str, name: str, thread: int | None, **rest: Any) -> dict[str, Any]:
        """Return an event; `thread` is JAX's number, None for the process itself."""
        tid = self._pid if thread is None else self._tids[thread]
        return {"ph": phase, "name": name, "pid": self._pid, "tid": tid, **rest}

    def _us(self, at_ns: int) -> float:
        return self._clock.at(self._process, at_ns) / 1000

    def metadata(self, name: str, order: int) -> Iterator[dict[str, Any]]:
        labels = f"{self._process.started.host}, Python {self._process.started.python}"
        yield self._event("M", "process_name", None, args={"name": name})
        yield self._event("M", "process_sort_index", None, args={"sort_index": order})
        yield self._event("M", "process_labels", None, args={"labels": labels})
        for place, (thread, text) in enumerate(self._names.items()):
            yield self._event("M", "thread_name", thread, args={"name": text})
            yield self._event("M", "thread_sort_index", thread, args={"sort_index": place})

    def slices(self) -> Iterator[dict[str, Any]]:
        by_thread: dict[int, list[Slice]] = {}
        for thread, slice_ in self._raw():
            by_thread.setdefault(thread, []).append(slice_)
        for thread, slices in by_thread.items():
            for begin_ns, end_ns, name, kind, about in nested(slices):
                begin = self._us(begin_ns)
                times = {"ts": begin, "dur": round(self._us(end_ns) - begin, 3)}
                yield self._event("X", name, thread, cat=kind, **times, args=about)

    def _raw(self) -> Iterator[tuple[int, Slice]]:
        process = self._process
        for start, part, _, more in starts(process):
            name = "import jax" if part == "import" else part
            about = {key: text[:LONGEST] for key, text in more.items()}
            yield start.thread, Slice(start.begin_ns, start.end_ns, name, "start", about)
        for built in self._builds:
            line, name = built.line, built.function.name
            shown = f"{name} (unfinished)" if built.going_on else name
            about = self._about(built)
            yield line.thread, Slice(line.begin_ns, line.end_ns, shown, "build", about)
            for span in line.spans:
                all_loaded = line.requests and built.hits == len(line.requests)
                stage = "load" if span.stage == "compile" and all_loaded else span.stage
                args = {"function": name, "times": span.times}
                yield line.thread, Slice(span.begin_ns, span.end_ns, stage, stage, args)
            for inner in line.inner:
                function = process.functions.get(inner.function)
                name = function.name if function else "?"
                where = {"file": function.file, "line": function.line} if function else {}
                yield line.thread, Slice(inner.begin_ns, inner.end_ns, name, "inner trace", where)

    def _about(self, built: Built) -> dict[str, Any]:
        line, function, arguments = built.line, built.function, built.arguments
        cause = self._profile.cause_of(built) if not built.going_on else None
        leaves = arguments.leaves if arguments else ()
        statics = arguments.statics if arguments else ()
        about = {
            "function": function.qualname,
            "defined": f"{function.file}:{function.line}" if function.file else "",
            "call site": built.site,
            "entered by": line.kind,
            "cause": cause.kind if cause else "",
            "argument": cause.argument if cause else "",
            "before": cause.values[0] if cause else "",
            "after": cause.values[1] if cause else "",
            "remedy": cause.remedy.id if cause and cause.remedy else "",
            "arguments": ", ".join(f"{leaf.path}: {leaf.aval}" for leaf in leaves)[:LONGEST],
            "static arguments": ", ".join(f"{s.name}={s.value}" for s in statics)[:LONGEST],
            "persistent cache": outcome(built),
            "key": ", ".join(request.key for request in line.requests if request.key)[:LONGEST],
            "error": line.error,
            "test": line.test,
        }
        return {name: text for name, text in about.items() if text}

    def moments(self) -> Iterator[dict[str, Any]]:
        for built in sorted(self._builds, key=lambda built: built.line.end_ns):
            at = self._us(answered_ns(built))
            for request, text in answers(built):
                args = {"module": request.module, "key": request.key, "reason": request.reason}
                args = {name: value for name, value in args.items() if value}
                what = {"cat": "cache", "ts": at, "s": "t", "args": args}
                yield self._event("i", f"cache {text}", built.line.thread, **what)
        for line, whose in cleared(self._process):
            args = {"function": whose} if line.function else {}
            what = {"cat": "cleared", "ts": self._us(line.at_ns), "s": "p", "args": args}
            yield self._event("i", line.what, None, **what)
