"""A profile as it is read: its processes, and every build with what its numbers stand for."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from harness.errors import ProfileError
from harness.profiles.log_reader import Log, read_folder
from harness.profiles.totals import pieces
from harness.profiles.totals.pieces import Interval, Piece
from harness.watch import events
from harness.watch.events import RUN, Run
from harness.watch.log_file import SUFFIX

if TYPE_CHECKING:
    import pandas as pd

    from harness.profiles.causes.kinds import Cause

_Line = TypeVar("_Line", bound=events.Line)

NOWHERE = events.Frame("", 0, "", "program")


@dataclass(frozen=True, eq=False)
class Process:
    """One process of the profiled program."""

    log: Log

    @property
    def started(self) -> events.Started:
        """The first line: who, where, when."""
        return self.log.started

    def of(self, kind: type[_Line]) -> tuple[_Line, ...]:
        """Return the lines of one kind, in the order in which they were written."""
        return tuple(line for line in self.log.lines if isinstance(line, kind))

    @functools.cached_property
    def functions(self) -> dict[int, events.Function]:
        """Functions by number."""
        return {line.id: line for line in self.of(events.Function)}

    @functools.cached_property
    def stacks(self) -> dict[int, events.Stack]:
        """Stacks by number."""
        return {line.id: line for line in self.of(events.Stack)}

    @functools.cached_property
    def arguments(self) -> dict[int, events.Arguments]:
        """Arguments by number."""
        return {line.id: line for line in self.of(events.Arguments)}

    @functools.cached_property
    def settings(self) -> dict[int, events.Settings]:
        """Settings by number."""
        return {line.id: line for line in self.of(events.Settings)}

    @functools.cached_property
    def ended(self) -> events.Ended | None:
        """The last line; None where the process was cut off."""
        found = self.of(events.Ended)
        return found[-1] if found else None

    @property
    def name(self) -> str:
        """What tells it apart: host, process number, and a count."""
        return self.log.name.removesuffix(SUFFIX)

    @functools.cached_property
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
        for line in self.log.lines:
            latest = max(latest, getattr(line, "end_ns", 0), getattr(line, "at_ns", 0))
        return latest

    @functools.cached_property
    def unfinished(self) -> tuple[events.Build, ...]:
        """Builds that were going on when the log was cut off; their numbers are negative."""
        if self.ended is not None:
            return ()
        running, done = self.of(events.Running), self.of(events.Build)
        return tuple(pieces.unfinished_of(running, done, self.end_ns))

    @functools.cached_property
    def holes(self) -> dict[int, list[Interval]]:
        """What lies inside each build and counts for itself, by the build's number."""
        others: dict[int, list[Interval]] = {}
        lines: list[events.Import | events.Backend] = []
        lines += [*self.of(events.Import), *self.of(events.Backend)]
        for line in lines:
            others.setdefault(line.thread, []).append((line.begin_ns, line.end_ns))
        return pieces.holes_of((*self.of(events.Build), *self.unfinished), others)


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

    def times(self, stage: str) -> int:
        """Return how often a stage was really done."""
        return sum(span.times for span in self.line.spans if span.stage == stage)

    def stage_ns(self, stage: str) -> int:
        """Return what a stage took: one of :data:`.totals.pieces.STAGES`, or `other`.

        Builds inside this one, and the start of the backend, are not in it: they count for
        themselves. So the builds of a thread can be added up.
        """
        return self._by_stage.get(stage, 0)

    @functools.cached_property
    def _by_stage(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for piece in self.pieces:
            length = piece.end_ns - piece.begin_ns
            found[piece.stage] = found.get(piece.stage, 0) + length
        return found

    @functools.cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What each moment of it went into, without builds inside it."""
        return pieces.pieces_of(self.line, self.process.holes.get(self.line.id, ()))

    @functools.cached_property
    def outermost(self) -> tuple[events.Span, ...]:
        """The spans that lie in no other, in order."""
        return pieces.outermost(self.line.spans)

    @functools.cached_property
    def build_ns(self) -> int:
        """What tracing, lowering, compiling, loading and writing took together."""
        return sum(took for stage, took in self._by_stage.items() if stage != pieces.OTHER)

    @property
    def key(self) -> tuple[str, int]:
        """What :attr:`Profile.causes` knows it by."""
        return self.process.log.name, self.line.id

    @property
    def hits(self) -> int:
        """How many requests the persistent cache answered."""
        return sum(request.outcome == "hit" for request in self.line.requests)


@dataclass
class Profile:
    """What was recorded of a program, by :func:`harness.profile` or `harness profile`."""

    processes: tuple[Process, ...]
    folder: Path | None = None
    run: Run | None = None
    causes: dict[tuple[str, int], Cause] = field(default_factory=dict)
    """Why each build was done, by :attr:`Built.key`; :meth:`cause_of` fills it."""
    _kept: tuple[tuple[Process, ...], tuple[Built, ...], tuple[Built, ...]] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    rows_kept: tuple[object, object, pd.DataFrame] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """The table of builds, with what it was made of; :mod:`.tables.build_rows` keeps it."""

    @property
    def builds(self) -> tuple[Built, ...]:
        """All builds of all processes that ended, in the order in which they began."""
        return self._read()[0]

    @property
    def unfinished(self) -> tuple[Built, ...]:
        """Builds that were going on when a log ended."""
        return self._read()[1]

    def _read(self) -> tuple[tuple[Built, ...], tuple[Built, ...]]:
        # `processes` is replaced when a profile that is being recorded ends.
        if self._kept is None or self._kept[0] is not self.processes:
            done = [built for process in self.processes for built in builds_of(process)]
            going_on = [
                built
                for process in self.processes
                for built in _numbered(process, process.unfinished)
            ]
            done.sort(key=lambda built: built.line.begin_ns)
            going_on.sort(key=lambda built: built.line.begin_ns)
            self._kept = (self.processes, tuple(done), tuple(going_on))
        return self._kept[1:]

    def report(self, path: Path | str) -> int:
        """Write everything known as one HTML file that loads nothing; return its size in bytes.

        Raises:
            UsageError: a package that reports need is not installed.
            StoreError: the file cannot be written.
        """
        from harness.report.profile.assembling import write

        return write(self, Path(path))

    @property
    def broken_lines(self) -> int:
        """Lines that could not be read, in all files."""
        return sum(process.log.broken_lines for process in self.processes)

    @property
    def begin_ns(self) -> int:
        """When the program was started, by the logs' clock."""
        begins = [process.begin_ns for process in self.processes]
        if self.run is not None:
            begins = [self.run.begin_ns]
        return min(begins, default=0)

    def cause_of(self, built: Built) -> Cause:
        """Return why a build was done; causes are looked for when they are first asked for."""
        from harness.profiles.causes.kinds import Cause

        if not self.causes:
            from harness.profiles.causes.deciding import decide

            self.causes = decide(self)
        return self.causes.get(built.key, Cause("unexplained"))

    def summary(self, width: int = 100, lines: int = 24) -> list[str]:
        """Return the answer as lines of text that fit a screen.

        Args:
            width: of a line, in characters; 60 at least.
            lines: how many there are at most; where even the sums and the next steps need more,
                these stay.
        """
        from harness.profiles.answer.summary import summary

        return summary(self, width, lines)

    def frame(self, table: str = "builds") -> pd.DataFrame:
        """Return one of the tables as a pandas frame; docs/profile.md has their columns.

        Args:
            table: `time`, `functions`, `builds`, `causes`, `sites`, `cache`, `eager` or `threads`.

        Raises:
            UsageError: if there is no such table.
        """
        from harness.profiles.tables.frames import frame

        return frame(self, table)

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder is not None else ""
        count = f"{len(self.builds)} builds, {len(self.processes)} process(es)"
        return f"<harness.Profile: {count}{where}; .summary(), .frame('functions')>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(chr(10).join(self.summary()))}</pre>"


def call_site_of(frames: Sequence[events.Frame]) -> events.Frame:
    """Return the innermost line of the program's own; of a library's, where there is none."""
    for origin in ("program", "library"):
        for frame in reversed(frames):
            if frame.origin == origin:
                return frame
    return NOWHERE


def builds_of(process: Process) -> Iterator[Built]:
    """Yield the builds of one process that ended, in that order."""
    return _numbered(process, process.of(events.Build))


def _numbered(process: Process, lines: Iterable[events.Build]) -> Iterator[Built]:
    unknown = events.Function(0, "?", "?", "", 0, "program")
    nowhere = events.Stack(0, ())
    for line in lines:
        yield Built(
            process,
            line,
            process.functions.get(line.function, unknown),
            process.stacks.get(line.stack, nowhere).frames,
            process.arguments.get(line.arguments),
            process.settings.get(line.settings),
        )


def read(folder: Path | str) -> Profile:
    """Read a profile from its folder; one that is still being written is read as far as it is.

    Args:
        folder: what `harness profile -o FOLDER` or `harness.profile(folder)` wrote.

    Raises:
        ProfileError: if there is none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ProfileError(
            f"{folder} is no folder. A profile is the folder that `harness profile -o FOLDER -- "
            "python program.py` wrote."
        )
    run = None
    if (folder / RUN).exists():
        try:
            run = msgspec.json.decode((folder / RUN).read_bytes(), type=Run)
        except (msgspec.DecodeError, UnicodeDecodeError):
            run = None
        except OSError as error:
            raise ProfileError(f"{folder / RUN} cannot be read: {error.strerror}.") from None
    return Profile(tuple(Process(log) for log in read_folder(folder)), folder, run)
