"""Read what was recorded of a program, whatever happened to its writer: profiles and ledgers."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from harness.errors import ProfileError
from harness.jaxhooks.events import (
    SCHEMA,
    AnyLine,
    Component,
    Late,
    Outcome,
    Overridden,
    Request,
    Started,
)
from harness.jaxhooks.log_file import is_sealed
from harness.records.files import lines as lines_of
from harness.records.json_file import SEALED, check_numbers

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
    collects = gc.isenabled()
    gc.disable()  # the lines all stay: looking for garbage among them is four fifths of the time
    try:
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
    finally:
        if collects:
            gc.enable()
    started = next((line for line in lines if isinstance(line, Started)), None)
    if unsealed and (started is None or started.schema >= SEALED):
        old = {n for n in unsealed if isinstance(one := lines[n], Request) and one.host}
        broken += len(unsealed - old)
        lines = [line for n, line in enumerate(lines) if n not in unsealed - old]
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
        elif not head.event and 1 <= head.schema <= SEALED:
            line = _request_of(_old.decode(text), text)
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


# --- ledgers of before ----------------------------------------------------------------------------


class _OldComponent(msgspec.Struct):
    name: str
    sha256: str
    values: tuple[str, ...]


class _OldOverridden(msgspec.Struct):
    name: str
    variable: str
    value: str


class _OldLate(msgspec.Struct):
    name: str
    value: str
    used: str


class _Old(msgspec.Struct):
    """A line of a ledger of before, in seconds."""

    schema: int
    at_s: float
    pid: int
    host: str
    jax: str
    module: str
    outcome: Outcome
    key: str = ""
    reason: str = ""
    detail: str = ""
    directory: str = ""
    overridden: tuple[_OldOverridden, ...] = ()
    late: tuple[_OldLate, ...] = ()
    limit: float | None = None
    request_s: float = 0.0
    key_s: float = 0.0
    load_s: float | None = None
    compile_s: float | None = None
    write_s: float | None = None
    lock_wait_s: float = 0.0
    own_s: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    entry_bytes: int | None = None
    stored_compile_s: int | None = None
    jax_saved_s: float | None = None
    read_error: str = ""
    write_error: str = ""
    metadata_in_key: bool = False
    settings: str = ""
    evicted: tuple[str, ...] = ()
    components: tuple[_OldComponent, ...] = ()
    components_prove_key: bool = True


_old = msgspec.json.Decoder(_Old)
_SECONDS = ("request", "key", "load", "compile", "write", "lock_wait", "own", "jax_saved")
_ALIKE = tuple({*_Old.__struct_fields__} & {*Request.__annotations__} - {"schema"})


def _request_of(old: _Old, text: bytes) -> Request:
    """Return a line of a ledger of before as it is written today."""
    if old.schema >= SEALED and is_sealed(text) is None:
        raise ValueError("it has no checksum")
    same = {name: getattr(old, name) for name in _ALIKE}
    same["entry_bytes"] = old.entry_bytes or 0
    same["overridden"] = tuple(Overridden(*msgspec.structs.astuple(one)) for one in old.overridden)
    same["late"] = tuple(Late(*msgspec.structs.astuple(one)) for one in old.late)
    same["components"] = tuple(Component(*msgspec.structs.astuple(one)) for one in old.components)
    seconds = {name: getattr(old, f"{name}_s") or 0.0 for name in _SECONDS}
    in_ns: dict[str, Any] = {f"{name}_ns": round(1e9 * value) for name, value in seconds.items()}
    return Request(**same, **in_ns, key_is_proven=old.components_prove_key)
