"""Read what was recorded of a program, whatever happened to its writer: profiles and ledgers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from harness.errors import ProfileError
from harness.program.collector import gc_off
from harness.records.files import lines as lines_of
from harness.records.json_file import SEALED, check_numbers
from harness.watch.events import (
    SCHEMA,
    AnyLine,
    Request,
    Started,
)
from harness.watch.log_file import is_sealed

_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    kind.__name__.lower(): msgspec.json.Decoder(kind) for kind in get_args(AnyLine)
}
_EVENT = re.compile(rb'\{"event":"(\w+)"')
"""How a line begins, whoever of our own writes it; others are read twice."""

MOST_S = 8e9
"""Seconds, as far as pandas counts nanoseconds since 1970: to the year 2223."""


@dataclass(frozen=True)
class Lines:
    """What is readable in one file."""

    lines: tuple[AnyLine, ...]
    broken: int
    """Damaged lines; one that was cut off at the end of the file is among them."""

    @property
    def started(self) -> Started | None:
        """The line that says who wrote it; None of a recording of the cache alone."""
        return next((line for line in self.lines if isinstance(line, Started)), None)


def read_lines(path: Path) -> Lines:
    """Read a file of a recording; lines that are none are counted and left out.

    Raises:
        OSError: it cannot be opened.
        ProfileError: a newer release wrote it.
    """
    lines: list[AnyLine] = []
    unsealed: set[int] = set()
    broken = 0
    with gc_off():  # the lines all stay: looking for garbage is four fifths of the time
        for text in lines_of(path):
            text = text.strip() if text else b""
            sealed = is_sealed(text)
            line = None if sealed is False else _decoded(text, path)
            if line is None:
                broken += 1
                continue
            if sealed is None:
                unsealed.add(len(lines))
            lines.append(line)
    started = next((line for line in lines if isinstance(line, Started)), None)
    if unsealed and (started is None or started.schema >= SEALED):
        broken += len(unsealed)
        lines = [line for n, line in enumerate(lines) if n not in unsealed]
    return Lines(tuple(lines), broken)


def decoded(text: bytes, path: Path) -> AnyLine | None:
    """Return a line of a file; None if it is torn, or nothing that is known.

    Raises:
        ProfileError: if it says that a newer release wrote the file.
    """
    return None if is_sealed(text) is False else _decoded(text, path)


class _Head(msgspec.Struct):
    """As much of a first line as any release writes."""

    event: str = ""
    schema: int = 0


_head = msgspec.json.Decoder(_Head)


def _decoded(text: bytes, path: Path) -> AnyLine | None:
    begin = _EVENT.match(text)
    head = _Head(begin[1].decode()) if begin else _read_head(text)
    line: AnyLine | None = None
    try:
        if head.event in _decoders:
            line = _decoders[head.event].decode(text)
        if line is not None:
            check_numbers(text)
            least_s = 0.0 if isinstance(line, Request) else -MOST_S
            if not least_s <= getattr(line, "at_s", getattr(line, "seconds", 0.0)) < MOST_S:
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
