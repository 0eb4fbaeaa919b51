"""A profile as it is read: its processes, and every build with what its numbers stand for."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.jaxhooks import events
from harness.jaxhooks.log_file import SUFFIX
from harness.profiles import pieces
from harness.profiles.names import line_text
from harness.profiles.pieces import Interval, Piece

NOWHERE = events.Frame("", 0, "", "program")

_Line = TypeVar("_Line", bound=events.Line)
UNKNOWN = events.Function(0, "?", "?", "", 0, "program")
_NO_STACK = events.Stack(0, ())

CALLS_SCHEMA = 4
"""From this format on it is recorded what is called of what was compiled ahead of time."""


def _by_number(kind: type[_Line]) -> functools.cached_property[dict[int, _Line]]:
    """Return a property of a process: its lines of a kind, by their number."""
    return functools.cached_property(lambda process: {one.id: one for one in process.of(kind)})


@dataclass(frozen=True, eq=False)
class Process:
    """One process of the profiled program: what it wrote down."""

    file: str
    started: events.Started
    lines: tuple[events.AnyLine, ...]
    broken_lines: int = 0

    @functools.cached_property
    def _by_kind(self) -> dict[type[events.Line], list[events.Line]]:
        lines: dict[type[events.Line], list[events.Line]] = {}
        for line in self.lines:
            lines.setdefault(type(line), []).append(line)
        return lines

    def of(self, kind: type[_Line]) -> tuple[_Line, ...]:
        """Return the lines of one kind, in the order in which they were written."""
        return tuple(self._by_kind.get(kind, ()))  # type: ignore[arg-type]

    functions = _by_number(events.Function)
    stacks = _by_number(events.Stack)
    arguments = _by_number(events.Arguments)
    settings = _by_number(events.Settings)

    @functools.cached_property
    def ended(self) -> events.Ended | None:
        """The last line; None where the process was cut off."""
        return next(reversed(self.of(events.Ended)), None)

    @property
    def name(self) -> str:
        """What tells it apart: host, process number, and a count."""
        return self.file.removesuffix(SUFFIX)

    @property
    def begin_ns(self) -> int:
        """When the process was started; where only a part of it was recorded, when that began."""
        started = self.started
        if started.how == "context":
            return started.clock_ns
        return min(started.process_ns, started.clock_ns)

    @functools.cached_property
    def end_ns(self) -> int:
        """When recording ended, or what was written last happened."""
        latest = self.started.clock_ns
        for line in self.lines:
            latest = max(latest, getattr(line, "end_ns", 0), getattr(line, "at_ns", 0))
        return latest

    @functools.cached_property
    def builds(self) -> tuple[Built, ...]:
        """The builds that ended, in that order."""
        return tuple(map(self._built, self.of(events.Build)))

    @functools.cached_property
    def uncalled(self) -> frozenset[int]:
        """The builds ahead of time that made what was never called, as far as that is known."""
        if self.ended is None or self.started.schema < CALLS_SCHEMA:
            return frozenset()
        called = {line.build for line in self.of(events.Called)}
        ahead = (one for one in self.of(events.Build) if one.kind == "compile" and not one.error)
        return frozenset(one.id for one in ahead) - called

    @functools.cached_property
    def works(self) -> dict[tuple[float, ...], int]:
        """The first build that had each :attr:`Built.work`."""
        return {built.work: built.line.id for built in reversed(self.builds)}

    @functools.cached_property
    def variants(self) -> dict[tuple[object, ...], set[events.Program | None]]:
        """The programs of the builds that are alike but for constants, by :attr:`Built.alike`."""
        variants: dict[tuple[object, ...], set[events.Program | None]] = {}
        for built in self.builds:
            variants.setdefault(built.alike, set()).add(built.line.program)
        return variants

    @functools.cached_property
    def unfinished(self) -> tuple[Built, ...]:
        """Builds that were going on when the log was cut off; their numbers are negative."""
        if self.ended is not None:
            return ()
        running, done = self.of(events.Running), self.of(events.Build)
        return tuple(map(self._built, pieces.unfinished_of(running, done, self.end_ns)))

    def _built(self, line: events.Build) -> Built:
        return Built(
            self,
            line,
            self.functions.get(line.function, UNKNOWN),
            self.stacks.get(line.stack, _NO_STACK).frames,
            self.arguments.get(line.arguments),
            self.settings.get(line.settings),
        )

    @functools.cached_property
    def holes(self) -> dict[int, list[Interval]]:
        """What lies inside each build and counts for itself, by the build's number."""
        builds = [built.line for built in (*self.builds, *self.unfinished)]
        return pieces.holes_of([*builds, *self.of(events.Import), *self.of(events.Backend)])


@dataclass(frozen=True, eq=False)
class Built:
    """A build, with what its numbers stand for; the unit of everything that is shown."""

    process: Process
    line: events.Build
    function: events.Function
    frames: tuple[events.Frame, ...]
    """The user's frames, the outermost first."""
    arguments: events.Arguments | None
    settings: events.Settings | None

    @functools.cached_property
    def call_site(self) -> events.Frame:
        """The innermost line of the program's own; of a library's, where there is none."""
        return call_site_of(self.frames)

    @property
    def site(self) -> str:
        """The line that it was asked for from, as people write it: `train.py:88`."""
        return line_text(self.call_site.file, self.call_site.line, self.process.started.cwd)

    @property
    def eager(self) -> bool:
        """Whether one of JAX's own functions was built, which was called outside jit."""
        return self.function.origin == "jax"

    @property
    def operation(self) -> bool:
        """Whether it is of one operation of JAX's that runs by itself.

        JAX makes a function object of its own for each, and finds it again by the operation's
        parameters, which are among the statics.
        """
        return self.eager and self.function.qualname.startswith("xla_primitive_callable.")

    @property
    def derived(self) -> bool:
        """Whether it is of what JAX made of an earlier trace, by differentiation, say."""
        return bool(self.line.derived) and not self.times("trace")

    @property
    def work(self) -> tuple[float, ...]:
        """The function, and what its program takes, gives and does, constants apart; or empty."""
        line, one = self.line, self.line.program or events.Program()
        work = line.function, one.argument_bytes, one.output_bytes, one.flops
        return work if line.program else ()  # temporary memory depends on constants, too

    @property
    def alike(self) -> tuple[object, ...]:
        """What builds have in common whose programs can differ in constants only."""
        return self.work, self.line.arguments, self.line.settings

    @property
    def going_on(self) -> bool:
        """Whether the log ended before it did."""
        return self.line.error == pieces.UNFINISHED

    def times(self, stage: str) -> int:
        """Return how often a stage was really done."""
        return sum(span.times for span in self.line.spans if span.stage == stage)

    def stage_ns(self, stage: str) -> int:
        """Return what a stage took: one of :data:`.pieces.STAGES`, or `other`.

        Builds inside this one, and the start of the backend, are not in it: they count for
        themselves. So the builds of a thread can be added up.
        """
        return self._by_stage.get(stage, 0)

    @functools.cached_property
    def _by_stage(self) -> dict[str, int]:
        lengths: dict[str, int] = {}
        for piece in self.pieces:
            length = piece.end_ns - piece.begin_ns
            lengths[piece.stage] = lengths.get(piece.stage, 0) + length
        return lengths

    @functools.cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What each moment of it went into, without builds inside it."""
        return pieces.pieces_of(self.line, self.process.holes.get(self.line.id, ()))

    @functools.cached_property
    def build_ns(self) -> int:
        """What tracing, lowering, compiling, loading and writing took together."""
        return sum(took for stage, took in self._by_stage.items() if stage != pieces.OTHER)

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from any other: the name of its log, and its number there."""
        return self.process.file, self.line.id

    @property
    def hits(self) -> int:
        """How many requests the persistent cache answered."""
        return sum(request.outcome == "hit" for request in self.line.requests)

    @property
    def compiles(self) -> int:
        """How many programs XLA compiled."""
        return max(0, self.times("compile") - self.hits)


def count_of(builds: Iterable[Built]) -> int:
    """Return how many builds of a function these are: the stages ahead of time are one."""
    kinds = Counter(built.line.kind for built in builds)
    return kinds.pop("call", 0) + max(kinds.values(), default=0)


def call_site_of(frames: Sequence[events.Frame]) -> events.Frame:
    """Return the innermost line of the program's own; of a library's, where there is none."""
    for origin in ("program", "library"):
        for frame in reversed(frames):
            if frame.origin == origin:
                return frame
    return NOWHERE


def seconds_of(builds: Iterable[Built]) -> float:
    """Return what building took in some builds together."""
    return sum(built.build_ns for built in builds) / 1e9
