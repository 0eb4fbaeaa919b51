"""Read a profile's log, whatever happened to its writer."""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec

from harness.errors import ProfileError
from harness.profiles.model import Process
from harness.records.files import lines as lines_of
from harness.records.json_file import SEALED, check_numbers
from harness.watch.events import SCHEMA, AnyLine, Started
from harness.watch.log_file import SUFFIX, is_sealed

_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    kind.__name__.lower(): msgspec.json.Decoder(kind) for kind in get_args(AnyLine)
}
_EVENT = re.compile(rb'\{"event":"(\w+)"')
"""How a line begins, whoever of our own writes it; others are read twice."""


MOST_S = 8e9
"""Seconds, as far as pandas counts nanoseconds since 1970: to the year 2223."""


class _Head(msgspec.Struct):
    """As much of a first line as any release writes."""

    event: str = ""
    schema: int = 0


_head = msgspec.json.Decoder(_Head)


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
    lines: list[AnyLine] = []
    unsealed: set[int] = set()
    broken = 0
    collects = gc.isenabled()
    gc.disable()  # the lines all stay: looking for garbage among them is four fifths of the time
    try:
        for text in lines_of(path):
            text = text.strip() if text else b""
            line = decoded(text, path)
            if line is None:
                broken += 1
                continue
            if is_sealed(text) is None:
                unsealed.add(len(lines))
            lines.append(line)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}.") from None
    finally:
        if collects:
            gc.enable()
    started = next((line for line in lines if isinstance(line, Started)), None)
    if started is None:
        return max(1, len(lines) + broken)
    if unsealed and started.schema >= SEALED:
        broken += len(unsealed)
        lines = [line for place, line in enumerate(lines) if place not in unsealed]
        if started not in lines:
            return len(lines) + broken
    return Process(path.name, started, tuple(lines), broken)


def decoded(text: bytes, path: Path) -> AnyLine | None:
    """Return a line of a file; None if it is torn, or nothing that is known.

    Raises:
        ProfileError: if it says that a newer release wrote the file.
    """
    if is_sealed(text) is False:
        return None
    begin = _EVENT.match(text)
    event = begin[1].decode() if begin else _read_head(text).event
    line: AnyLine | None = None
    if event in _decoders:
        try:
            line = _decoders[event].decode(text)
            check_numbers(text)
            if not -MOST_S < getattr(line, "at_s", getattr(line, "seconds", 0.0)) < MOST_S:
                raise ValueError("no program takes so long")
        except (ValueError, RecursionError):  # msgspec's and Unicode's are such
            line = None
    if line is None or isinstance(line, Started):
        head = _read_head(text)
        if head.event == "started" and head.schema > SCHEMA:
            raise ProfileError(
                f"{path} was written by a newer jax-harness: its format is {head.schema}, and this "
                f"one reads up to {SCHEMA}. Read it with that release."
            )
    return line


def _read_head(text: bytes) -> _Head:
    try:
        return _head.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Head()
