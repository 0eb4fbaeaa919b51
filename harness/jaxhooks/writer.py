"""Write a profile's log line by line: into this process's file, or into memory."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ProfileError
from harness.jaxhooks.events import Line, Started
from harness.jaxhooks.log_file import LogFile, sealed


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
        """Make this process's file; a ProfileError if the folder cannot be made or written to."""
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


def encoded(line: object) -> bytes:
    """Return a line as it stands in a file, closed by its checksum; defaults are left out.

    What JSON cannot say is said otherwise: half a surrogate pair (a file name that is not UTF-8)
    becomes its escape, and an infinite or undefined number 0.
    """
    try:
        text = _encoder.encode(_named(line)).encode()
    except (UnicodeEncodeError, ValueError):
        text = _encoder.encode(_sayable(_named(line))).encode()
    return sealed(text) + b"\n"


def _named(line: object) -> dict[str, Any]:
    event = {"event": type(line).__name__.lower()} if isinstance(line, Line) else {}
    return event | _plain(line)


def _plain(line: object) -> dict[str, Any]:
    shape = _shapes.get(type(line))
    if shape is None:
        kind: Any = type(line)
        own = dataclasses.fields(kind)
        names = tuple(field.name for field in own)
        defaults = tuple(field.default for field in own)
        shape = _shapes[kind] = names, defaults, operator.attrgetter(*names)
    names, defaults, values_of = shape
    given = zip(names, values_of(line), defaults, strict=True)
    return {name: value for name, value, default in given if value != default}


_Shape = tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], Any]]
_shapes: dict[type, _Shape] = {}


_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_plain
)


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    if isinstance(value, dict):
        return {_sayable(name): _sayable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value if isinstance(value, bool | int | float | None) else _sayable(_plain(value))
