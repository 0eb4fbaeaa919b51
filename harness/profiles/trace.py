"""A profile as a trace that Perfetto and chrome://tracing open.

The format is Google's Trace Event Format, its JSON object form: complete events (`X`) for builds
and their stages, instant events (`i`) for what the persistent cache answered and for emptied
caches, counters (`C`) for the bytes of executables, metadata (`M`) for names. Times are
microseconds since the profile began.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import StoreError
from harness.profiles import tracks
from harness.profiles.model import Built, Process
from harness.profiles.recorded import Recorded
from harness.profiles.tracks import Clock
from harness.watch import events

LONGEST = 300
"""Characters of one text in an event."""


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
    found: list[Slice] = []
    around: list[Slice] = []
    for one in sorted(slices, key=lambda one: (one.begin_ns, -one.end_ns)):
        while around and around[-1].end_ns <= one.begin_ns:
            around.pop()
        if around and one.end_ns > around[-1].end_ns:
            one = one._replace(end_ns=around[-1].end_ns)
        one = one._replace(end_ns=max(one.begin_ns, one.end_ns))
        found.append(one)
        around.append(one)
    return found


def write(profile: Recorded, output: Path) -> int:
    """Write a profile's trace, packed with gzip if the name ends in `.gz`; return its events.

    Raises:
        StoreError: the file cannot be written.
    """
    made = trace(profile)
    line = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    text = line.encode("utf-8", "backslashreplace")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(gzip.compress(text, 6, mtime=0) if output.suffix == ".gz" else text)
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with -o."
        ) from error
    return len(made["traceEvents"])


def trace(profile: Recorded) -> dict[str, Any]:
    """Return a profile as the object that a trace file holds."""
    clock = Clock(profile)
    names = tracks.process_names(profile)
    numbers = _Numbers(profile)
    found: list[dict[str, Any]] = []
    for order, process in enumerate(profile.processes):
        track = _Track(process, clock, numbers)
        found += track.metadata(names[process.file], order)
        builds = [*process.builds, *process.unfinished]
        found += _slices(profile, process, track, builds)
        found += _answers(track, builds)
        found += _cleared(process, track)
        found += _bytes(track, builds)
    run = profile.run
    about = {"command": " ".join(run.command), "exit_code": run.exit_code} if run else {}
    return {
        "traceEvents": found,
        "displayTimeUnit": "ms",
        "otherData": {"tool": "harness", **about},
    }


class _Numbers:
    """Numbers of processes and threads: small, and no number twice, as Perfetto wants them."""

    def __init__(self, profile: Recorded) -> None:
        pids = [process.started.pid for process in profile.processes]
        self._next = max(pids, default=0) + 1
        self._taken: set[int] = set()

    def process(self, pid: int) -> int:
        if pid in self._taken:
            return self.another()
        self._taken.add(pid)
        return pid

    def another(self) -> int:
        self._next += 1
        return self._next


class _Track:
    """Makes events of one process."""

    def __init__(self, process: Process, clock: Clock, numbers: _Numbers) -> None:
        self._process, self._clock = process, clock
        self.pid = numbers.process(process.started.pid)
        self._names = tracks.thread_names(process)
        main = process.started.main_thread
        self._tids = {t: self.pid if t == main else numbers.another() for t in self._names}

    def us(self, at_ns: int) -> float:
        """Return a time of this process in the trace's unit."""
        return self._clock.at(self._process, at_ns) / 1000

    def event(self, phase: str, name: str, thread: int | None, **rest: Any) -> dict[str, Any]:
        """Return an event; `thread` is JAX's number, None for the process itself."""
        tid = self.pid if thread is None else self._tids[thread]
        return {"ph": phase, "name": name, "pid": self.pid, "tid": tid, **rest}

    def metadata(self, name: str, order: int) -> Iterator[dict[str, Any]]:
        """Yield the names of the process and of its threads."""
        yield self.event("M", "process_name", None, args={"name": name})
        yield self.event("M", "process_sort_index", None, args={"sort_index": order})
        labels = f"{self._process.started.host}, Python {self._process.started.python}"
        yield self.event("M", "process_labels", None, args={"labels": labels})
        for place, (thread, text) in enumerate(self._names.items()):
            yield self.event("M", "thread_name", thread, args={"name": text})
            yield self.event("M", "thread_sort_index", thread, args={"sort_index": place})


def _slices(
    profile: Recorded, process: Process, track: _Track, builds: list[Built]
) -> Iterator[dict[str, Any]]:
    found: dict[int, list[Slice]] = {}
    for thread, slice_ in _raw(profile, process, builds):
        found.setdefault(thread, []).append(slice_)
    for thread, slices in found.items():
        for slice_ in nested(slices):
            begin = track.us(slice_.begin_ns)
            yield track.event(
                "X",
                slice_.name,
                thread,
                cat=slice_.kind,
                ts=begin,
                dur=round(track.us(slice_.end_ns) - begin, 3),
                args=slice_.about,
            )


def _raw(profile: Recorded, process: Process, builds: list[Built]) -> Iterator[tuple[int, Slice]]:
    for imported in process.of(events.Import):
        yield (
            imported.thread,
            Slice(imported.begin_ns, imported.end_ns, "import jax", "start", imported.versions),
        )
    for woken in process.of(events.Backend):
        about = {"platform": woken.platform, "devices": ", ".join(woken.devices)[:LONGEST]}
        yield woken.thread, Slice(woken.begin_ns, woken.end_ns, "backend", "start", about)
    for built in builds:
        line = built.line
        about = _about(built, profile)
        going_on = built.going_on
        name = f"{built.function.name} (unfinished)" if going_on else built.function.name
        yield line.thread, Slice(line.begin_ns, line.end_ns, name, "build", about)
        for span in line.spans:
            stage = tracks.shown_stage(built, span)
            args = {"function": built.function.name, "times": span.times}
            yield line.thread, Slice(span.begin_ns, span.end_ns, stage, stage, args)
        for inner in line.inner:
            function = process.functions.get(inner.function)
            name = function.name if function else "?"
            where = {"file": function.file, "line": function.line} if function else {}
            yield line.thread, Slice(inner.begin_ns, inner.end_ns, name, "inner trace", where)


def _about(built: Built, profile: Recorded) -> dict[str, Any]:
    """Return what a build's event carries; empty ones are left out."""
    line, arguments = built.line, built.arguments
    cause = profile.cause_of(built) if not built.going_on else None
    leaves = ", ".join(
        f"{leaf.path}: {leaf.aval}" for leaf in (arguments.leaves if arguments else ())
    )
    statics = ", ".join(f"{s.name}={s.value}" for s in (arguments.statics if arguments else ()))
    about = {
        "function": built.function.qualname,
        "defined": f"{built.function.file}:{built.function.line}" if built.function.file else "",
        "call site": built.site,
        "entered by": line.kind,
        "cause": cause.sentence or cause.kind if cause else "",
        "remedy": cause.remedy if cause else "",
        "arguments": leaves[:LONGEST],
        "static arguments": statics[:LONGEST],
        "persistent cache": tracks.outcome(built),
        "key": ", ".join(request.key for request in line.requests if request.key)[:LONGEST],
        "error": line.error,
        "test": line.test,
    }
    return {name: text for name, text in about.items() if text}


def _answers(track: _Track, builds: list[Built]) -> Iterator[dict[str, Any]]:
    for built in builds:
        for request, text in tracks.answers(built):
            args = {"module": request.module, "key": request.key, "reason": request.reason}
            yield track.event(
                "i",
                f"cache {text}",
                built.line.thread,
                cat="cache",
                ts=track.us(tracks.answered_ns(built)),
                s="t",
                args={name: value for name, value in args.items() if value},
            )


def _cleared(process: Process, track: _Track) -> Iterator[dict[str, Any]]:
    for line in tracks.cleared(process):
        function = process.functions.get(line.function)
        args = {"function": function.name} if function else {}
        yield track.event(
            "i", line.what, None, cat="cleared", ts=track.us(line.at_ns), s="p", args=args
        )


def _bytes(track: _Track, builds: list[Built]) -> Iterator[dict[str, Any]]:
    """Yield how many bytes of executables were built so far; those set free still count."""
    total = 0
    for built in sorted(builds, key=lambda built: built.line.end_ns):
        program = built.line.program
        if program is not None and program.code_bytes:
            total += program.code_bytes
            yield track.event(
                "C",
                "executables built",
                None,
                ts=track.us(built.line.end_ns),
                args={"bytes of code": total},
            )
