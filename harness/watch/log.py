"""Write a profile's log line by line, and read it back, whatever happened to its writer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import HarnessError
from harness.watch.events import SCHEMA, AnyLine, Line, Started
from harness.watch.process import SUFFIX as SUFFIX
from harness.watch.process import LogFile

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


class ProfileError(HarnessError):
    """A profile cannot be written or read."""


@dataclass
class Writer:
    """Appends lines to a file of this process, or keeps them in memory.

    A line that cannot be written never raises: the program goes on. It waits for room on the disk,
    and is counted as lost when too many wait.
    """

    folder: Path | None
    kept: list[Line] = field(default_factory=list)
    file: LogFile | None = None
    """Where lines go; one that was begun already is gone on with."""
    since_ns: int = 0
    """Builds that began before this are not its own."""

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self.file.lost if self.file is not None else 0

    def open(self) -> None:
        """Make this process's file.

        Raises:
            ProfileError: if the folder cannot be made or written to.
        """
        if self.folder is None or self.file is not None:
            return
        try:
            file = LogFile(str(self.folder))
            file.open()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise ProfileError(
                f"The profile's folder {self.folder} cannot be written: {why}. "
                "Give another one with -o."
            ) from None
        self.file = file

    def write(self, line: Line) -> None:
        """Append a line; thread-safe."""
        if self.file is None:
            self.kept.append(line)
        elif not (isinstance(line, Started) and self.file.first):
            try:
                text = encoded(line)
            except Exception:  # whatever it is, it is not the program's to see
                self.file.lost += 1
            else:
                self.file.append(text)

    def close(self) -> None:
        """Close the file, if there is one."""
        if self.file is not None:
            self.file.close()


def encoded(line: Line) -> bytes:
    """Return a line as it stands in the file; what JSON cannot say is said otherwise.

    Half a surrogate pair (a file name that is not UTF-8) becomes its escape, and an infinite or
    undefined number 0.
    """
    try:
        text = _encoder.encode(line)
        plain = b"null" not in text
    except UnicodeEncodeError:
        plain = False
    if not plain:
        text = _encoder.encode(_sayable(msgspec.to_builtins(line)))
    return text + b"\n"


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    if isinstance(value, dict):
        return {_sayable(name): _sayable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value


@dataclass(frozen=True)
class Log:
    """What one process wrote."""

    name: str
    started: Started
    lines: tuple[AnyLine, ...]
    broken_lines: int = 0


class _Head(msgspec.Struct):
    """As much of a first line as any release writes."""

    event: str = ""
    schema: int = 0


_head = msgspec.json.Decoder(_Head)


def read_folder(folder: Path) -> Iterator[Log]:
    """Yield the log of every process, in the order in which they began.

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
        if isinstance(log, Log):
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
    yield from logs


def read_file(path: Path) -> Log | int:
    """Read one process's file; lines that are none are counted and left out.

    Returns:
        The log; where no line says who wrote it, the number of lines, at least 1.

    Raises:
        ProfileError: if the file cannot be opened, or a newer release wrote it.
    """
    lines: list[AnyLine] = []
    broken = 0
    try:
        with path.open("rb") as file:
            for text in file:
                if text := text.strip():
                    line = decoded(text, path)
                    if line is None:
                        broken += 1
                    else:
                        lines.append(line)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}.") from None
    started = next((line for line in lines if isinstance(line, Started)), None)
    if started is None:
        return max(1, len(lines) + broken)
    return Log(path.name, started, tuple(lines), broken)


def decoded(text: bytes, path: Path) -> AnyLine | None:
    """Return a line of a file; None if it is torn, or nothing that is known.

    Raises:
        ProfileError: if it says that a newer release wrote the file.
    """
    line: AnyLine | None
    try:
        line = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        line = None
    if line is None or isinstance(line, Started):
        _check_schema(text, path)
    return line


def _check_schema(text: bytes, path: Path) -> None:
    try:
        head = _head.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if head.event == "started" and head.schema > SCHEMA:
        raise ProfileError(
            f"{path} was written by a newer jax-harness: its format is {head.schema}, and this one "
            f"reads up to {SCHEMA}. Read it with that release."
        )
