"""What was recorded of a program: its processes, every build, and why each was done."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import ProfileError, UsageError
from harness.jaxhooks import session
from harness.jaxhooks.events import RUN, Run
from harness.jaxhooks.log_file import SUFFIX
from harness.jaxhooks.writer import Writer
from harness.profiles.causes.cause import Cause
from harness.profiles.causes.decide import decide
from harness.profiles.model import Built, Process
from harness.records import json_file
from harness.records.recording import read_lines

_Made = TypeVar("_Made")


class Recorded:
    """What was recorded of a program; while that goes on, whatever is asked is answered as of now.

    Attributes:
        folder: where its logs are; None where they are in memory.
        run: the command; None where a part of a program was recorded.
        run_damage: why the command is not known, in a sentence, where its file is damaged.
    """

    def __init__(
        self,
        processes: tuple[Process, ...] = (),
        folder: Path | None = None,
        run: Run | None = None,
        run_damage: str = "",
    ) -> None:
        self.folder = folder
        self.run = run
        self.run_damage = run_damage
        self._processes = processes
        self._made: dict[str, Any] = {}
        """What follows from the processes."""
        self._writer: Writer | None = None
        """Where lines are still written."""
        self._position = -1
        """How much of them was read: bytes of a file, or lines in memory."""

    def _catch_up(self) -> None:
        """Read the lines that were written since."""
        if self._writer is None:
            return
        kept, file = self._writer.kept, self._writer.file
        try:
            position = os.stat(file.path).st_size if file is not None else len(kept)
            if position == self._position:
                return
            if file is not None:
                process = read_file(Path(file.path))
            else:
                process = Process("memory", kept[0], tuple(kept))  # type: ignore[arg-type]
        except (OSError, ProfileError, IndexError):  # it was taken away: what was read of it stays
            return
        self._position, self._made = position, {}
        self._processes = (process,) if isinstance(process, Process) else ()

    @property
    def is_open(self) -> bool:
        """Whether this process records into it now."""
        return self._writer is not None

    def record(self, sample_ms: float) -> None:
        """Record on all threads of this process, until :meth:`close`; see :func:`harness.profile`.

        Raises:
            UsageError: it is open, or was.
            ProfileError: as :func:`harness.profile`.
        """
        if self.is_open or self._processes:
            raise UsageError("A profile is recorded once. Take a new one: harness.profile().")
        writer = Writer(self.folder.absolute() if self.folder is not None else None)
        session.start(writer, "context", sample_ms)
        self.folder, self._writer = writer.folder, writer

    def close(self) -> None:
        """Record no more, and read what was written last; nothing where it is not open."""
        if self._writer is not None:
            session.stop(self._writer, "context")
            self._catch_up()
            self._writer = None

    def once(self, name: str, make: Callable[[], _Made]) -> _Made:
        """Return what was made under a name, as long as nothing new is recorded."""
        self._catch_up()
        made = self._made
        if name not in made:
            made[name] = make()
        return made[name]  # type: ignore[no-any-return]

    @property
    def processes(self) -> tuple[Process, ...]:
        """The processes that recorded, in the order in which they began."""
        self._catch_up()
        return self._processes

    @property
    def builds(self) -> tuple[Built, ...]:
        """All builds of all processes that ended, in the order in which they began."""
        return self.once("builds", lambda: _in_order(one.builds for one in self._processes))

    @property
    def unfinished(self) -> tuple[Built, ...]:
        """Builds that were going on when a log ended."""
        return self.once("unfinished", lambda: _in_order(one.unfinished for one in self._processes))

    @property
    def causes(self) -> dict[tuple[str, int], Cause]:
        """Why each build was done, by :attr:`Built.key`; found when it is first asked for."""
        return self.once("causes", lambda: decide(self.builds))

    def cause_of(self, built: Built) -> Cause:
        """Return why a build was done."""
        return self.causes.get(built.key, Cause("unexplained"))

    @property
    def broken_lines(self) -> int:
        """Lines that could not be read, in all files."""
        return sum(process.broken_lines for process in self.processes)

    @property
    def begin_ns(self) -> int:
        """When the program was started, by the logs' clock."""
        if self.run is not None:
            return self.run.begin_ns
        return min((process.begin_ns for process in self.processes), default=0)

    @property
    def command(self) -> tuple[str, ...]:
        """What was run: the command, or the arguments of the first process."""
        if self.run is not None:
            return self.run.command
        return self.processes[0].started.argv if self.processes else ()


def _in_order(builds: Iterable[tuple[Built, ...]]) -> tuple[Built, ...]:
    return tuple(sorted(itertools.chain(*builds), key=lambda built: built.line.begin_ns))


def read(folder: Path | str) -> Recorded:
    """Read a profile from its folder; one that is still being written is read as far as it is.

    Args:
        folder: what `harness profile -o FOLDER` or `harness.profile(folder)` wrote.

    Raises:
        UsageError: there is no such folder.
        ProfileError: it holds no profile.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder. A profile is the folder that `harness profile -o FOLDER -- "
            "python program.py` wrote."
        )
    run, damage = None, ""
    try:
        run = json_file.read(folder / RUN, Run)
    except FileNotFoundError:
        pass
    except json_file.DamagedError as error:
        damage = f"{RUN} is left out: {error}."
    return Recorded(tuple(read_folder(folder)), folder, run, run_damage=damage)


def read_folder(folder: Path) -> list[Process]:
    """Return every process, in the order in which they began.

    Lines of a file that does not say who wrote it are counted with the first log.

    Raises:
        ProfileError: if there is no log in the folder, or a newer release wrote it.
    """
    logs = []
    broken = 0
    for path in sorted(folder.glob("*" + SUFFIX)):
        if not path.is_file():
            continue
        log = read_file(path)
        if isinstance(log, Process):
            logs.append(log)
        else:
            broken += log
    if not logs:
        raise ProfileError(
            f"{folder} holds no profile. `harness profile -o {folder} -- python program.py` "
            "writes one."
        )
    logs.sort(key=lambda log: log.started.clock_ns)
    logs[0] = replace(logs[0], broken_lines=logs[0].broken_lines + broken)
    return logs


def read_file(path: Path) -> Process | int:
    """Read one process's file; lines that are none are counted and left out.

    Returns:
        The log; where no line says who wrote it, the number of lines, at least 1.

    Raises:
        ProfileError: if the file cannot be opened, or a newer release wrote it.
    """
    try:
        recorded = read_lines(path)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}.") from None
    if recorded.started is None:
        return max(1, len(recorded.lines) + recorded.broken)
    return Process(path.name, recorded.started, recorded.lines, recorded.broken)
