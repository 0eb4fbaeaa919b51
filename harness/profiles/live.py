"""Follow a profile while it is written: what is being built now, and what was so far."""

from __future__ import annotations

import contextlib
import heapq
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from harness.errors import ProfileError
from harness.profiles.figures import function_key
from harness.profiles.log_reader import decoded
from harness.profiles.model import UNKNOWN, call_site_of
from harness.records.printable import printable
from harness.records.units import counted, seconds_text
from harness.watch import events
from harness.watch.log_file import SUFFIX

Nanoseconds = npt.NDArray[np.int64]

AT_ONCE_BYTES = 32 << 20
"""What is read of one file in one look."""

MOST_NAMED = 10
"""Functions that a state names."""


@dataclass(frozen=True)
class Now:
    """A build that is going on."""

    function: str
    place: str
    """Where it was asked for, `train.py:88`; empty where that is not known."""
    stage: str
    begin_ns: int
    before: int
    """How often that stage of the function was done before, in all processes."""
    pid: int


@dataclass
class Tally:
    """Builds of one function."""

    function: str
    place: str = ""
    """Where the last one was asked for."""
    builds: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class State:
    """A profile at one moment."""

    processes: int
    """Those that have not ended."""
    builds: int
    seconds: float
    """Wall time in which some thread was building, what is going on included."""
    running: tuple[Now, ...] = ()
    """The one that takes longest first."""
    last: Tally | None = None
    """The build that ended last, alone."""
    costliest: tuple[Tally, ...] = ()
    """The functions with the most seconds so far, the dearest first."""


class Following:
    """Reads what is written of a profile as it grows, every byte once.

    Args:
        source: its folder, or the lines that this process keeps in memory.
    """

    def __init__(self, source: Path | list[events.Line]) -> None:
        self._source = source
        self._files: dict[Path, _Lines] = {}
        self._tallies: dict[tuple[object, ...], Tally] = {}
        self._times: Counter[tuple[tuple[object, ...], str]] = Counter()
        """How often each stage of a function was done."""
        self._stretches: Nanoseconds = np.zeros((2, 0), np.int64)
        """When some thread was building: begins and ends."""
        self._new: list[tuple[int, int]] = []
        self._builds = 0
        self._last: tuple[int, Tally] | None = None

    def look(self, at_ns: int) -> State:
        """Read what is new, and return the state.

        Args:
            at_ns: now, by `time.perf_counter_ns`.
        """
        if isinstance(self._source, Path):
            for path in sorted(self._source.glob("*" + SUFFIX)):
                self._files.setdefault(path, _Lines(path))
        else:
            self._files.setdefault(Path(), _Lines(self._source))
        for file in self._files.values():
            if not file.ended:
                for line in file.new():
                    self._take(file, line)
        running = sorted(self._running(), key=lambda now: now.begin_ns)
        new, self._new = np.array(self._new, np.int64).reshape(-1, 2).T, []
        self._stretches = joined(np.concatenate([self._stretches, new], axis=1))
        since = min((now.begin_ns for now in running), default=at_ns)
        begins, ends = joined(np.column_stack([self._stretches, [since, max(since, at_ns)]]))
        most = heapq.nlargest(MOST_NAMED, self._tallies.values(), key=lambda one: one.seconds)
        return State(
            sum(not file.ended for file in self._files.values()),
            self._builds,
            float((ends - begins).sum()) / 1e9,
            tuple(running),
            self._last[1] if self._last else None,
            tuple(map(replace, most)),
        )

    def _take(self, file: _Lines, line: events.Line) -> None:
        match line:
            case events.Started():
                file.started = line
            case events.Function():
                file.functions[line.id] = line
            case events.Stack():
                frame = call_site_of(line.frames)
                place = f"{Path(frame.file).name}:{frame.line}" if frame.file else ""
                file.places[line.id] = place
            case events.Running():
                file.running[line.thread] = line
            case events.Visits():
                file.running.pop(line.thread, None)
            case events.Build():
                self._built(file, line)
            case events.Ended():
                file.ended = True
                file.running.clear()

    def _built(self, file: _Lines, line: events.Build) -> None:
        going_on = file.running.get(line.thread)
        # One that began later went on inside it.
        if going_on is not None and line.begin_ns <= going_on.begin_ns:
            del file.running[line.thread]
        self._builds += 1
        function = file.functions.get(line.function, UNKNOWN)
        key = function_key(function)
        total = self._tallies.setdefault(key, Tally(function.name))
        total.builds += 1
        total.place = file.places.get(line.stack, "") or total.place
        took = end = 0
        for span in sorted(line.spans, key=lambda span: (span.begin_ns, -span.end_ns)):
            self._times[key, span.stage] += span.times
            self._new.append((span.begin_ns, span.end_ns))
            took += max(0, span.end_ns - max(span.begin_ns, end))
            end = max(end, span.end_ns)
        total.seconds += took / 1e9
        if self._last is None or line.end_ns >= self._last[0]:
            self._last = line.end_ns, Tally(function.name, total.place, 1, took / 1e9)

    def _running(self) -> Iterator[Now]:
        for file in self._files.values():
            started = file.started
            here = started is not None and started.host == socket.gethostname()
            if file.running and started and here and not psutil.pid_exists(started.pid):
                file.running.clear()
            for line in file.running.values():
                function = file.functions.get(line.function, UNKNOWN)
                before = self._times[function_key(function), line.stage]
                place = file.places.get(line.stack, "")
                pid = file.started.pid if file.started else 0
                yield Now(function.name, place, line.stage, line.begin_ns, before, pid)


def joined(stretches: Nanoseconds) -> Nanoseconds:
    """Return stretches of time, joined where they touch: begins and ends, shape (2, n)."""
    begins, ends = stretches[:, np.argsort(stretches[0], kind="stable")]
    ends = np.maximum.accumulate(ends)
    first = np.ones(len(begins), bool)
    first[1:] = begins[1:] > ends[:-1]
    return np.stack([begins[first], ends[np.roll(first, -1)]])


@dataclass
class _Lines:
    """One process's lines, and what of them later ones refer to."""

    source: Path | list[events.Line]
    started: events.Started | None = None
    functions: dict[int, events.Function] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    running: dict[int, events.Running] = field(default_factory=dict)
    ended: bool = False
    _offset: int = 0
    _half: bytes = b""

    def new(self) -> list[events.Line]:
        """Return the lines that were finished since the last time."""
        if isinstance(self.source, list):
            kept = self.source[self._offset :]
            self._offset += len(kept)
            return kept
        try:
            with self.source.open("rb") as file:
                file.seek(self._offset)
                text = file.read(AT_ONCE_BYTES)
        except OSError:
            return []
        self._offset += len(text)
        *whole, self._half = (self._half + text).split(b"\n")
        lines: list[events.Line] = []
        for one in whole:
            with contextlib.suppress(ProfileError):  # of a newer release: nothing to be shown
                if (line := decoded(one, self.source)) is not None:
                    lines.append(line)
        return lines


DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}


def line_of(state: State, now_ns: int, elapsed_s: float) -> str:
    """Return the state as a line: what is being built, else the last build; then the sums."""
    parts = []
    if state.running:
        others = len(state.running) - 1
        parts.append(doing(state.running[0], now_ns) + (f", and {others} more" if others else ""))
    builds = counted(state.builds, "build")
    parts.append(f"{builds}, {seconds_text(state.seconds)} of {seconds_text(elapsed_s)}")
    if not state.running and state.last is not None:
        last, most = state.last, next(iter(state.costliest), None)
        parts.append(f"last {named(last.function, last.place)}, {seconds_text(last.seconds)}")
        if most is not None and most.builds > 1:
            parts.append(f"most `{printable(most.function, '')}`, {seconds_text(most.seconds)}")
    return " · ".join(parts)


def doing(now: Now, now_ns: int) -> str:
    """Return a build that is going on as text: compiling `loss` (train.py:88) for 12 s, 4th time.

    The first time is not called so.
    """
    took = seconds_text(max(0, now_ns - now.begin_ns) / 1e9)
    text = f"{DOING.get(now.stage, 'building')} {named(now.function, now.place)} for {took}"
    return f"{text}, {ordinal(now.before + 1)} time" if now.before else text


def named(function: str, place: str) -> str:
    """Return a function and where it was called, with nothing in it that moves a cursor."""
    return f"`{printable(function, '')}`" + (f" ({printable(place, '')})" if place else "")


def ordinal(number: int) -> str:
    """Return a number's ordinal: 1st, 2nd, 3rd, 4th, 11th."""
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
