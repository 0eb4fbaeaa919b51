"""Which builds take long or are many, read from a profile's folder while it is still written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.jaxhooks import events
from harness.jaxhooks.log_file import SUFFIX
from harness.profiles.model import UNKNOWN, call_site_of
from harness.records.recording import decoded

_READ = tuple(f'{{"event":"{kind}"'.encode() for kind in ("function", "stack", "running"))
"""How the lines begin that matter here; the others, nearly all, are not decoded as a whole."""

_BUILD = b'{"event":"build"'

MANY = 50
"""Builds of one function beyond which it is named while the program runs."""


class _Build(msgspec.Struct):
    """As much of a build's line as is counted."""

    function: int = 0
    stack: int = 0


_build = msgspec.json.Decoder(_Build)


class Often(NamedTuple):
    """A function of the program's or a library's that was built more than :data:`MANY` times."""

    function: str
    place: str
    """The line that asked for the last of them; empty where that is unknown."""


class Slow(NamedTuple):
    """A stage of a build that is still going on."""

    stage: str
    """`trace`, `lower` or `compile`."""
    function: str
    place: str
    """The line of the program that asked for it, `train.py:88`; empty where that is unknown."""
    seconds: float
    """So far, of this stage."""


class SlowBuilds:
    """Reads what is new in a folder at each `look`, every byte once.

    Args:
        folder: of the profile; its files may come later.
        least_s: how many seconds a stage must have taken.
    """

    def __init__(self, folder: Path, least_s: float) -> None:
        self._folder, self._least_s = folder, least_s
        self._logs: dict[Path, _Log] = {}

    def look(self) -> list[Slow | Often]:
        """Return what has become slow, or often built, since the last look, each of it once."""
        logs = (self._logs.setdefault(path, _Log(path)) for path in self._folder.glob("*" + SUFFIX))
        return [one for log in logs for one in log.new(self._least_s)]


@dataclass
class _Log:
    """One process's file, and what of it later lines refer to."""

    path: Path
    functions: dict[int, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    """The stages that were returned, by thread and begin."""
    builds: Counter[int] = field(default_factory=Counter)
    """Of each function, JAX's own left out."""
    offset: int = 0
    half: bytes = b""

    def new(self, least_s: float) -> Iterator[Slow | Often]:
        try:
            if self.path.stat().st_size == self.offset:
                return
            with self.path.open("rb") as file:
                file.seek(self.offset)
                text = file.read()
        except OSError:
            return
        self.offset += len(text)
        *whole, self.half = (self.half + text).split(b"\n")
        for line in whole:
            if line.startswith(_BUILD):
                yield from self._often(line)
            match decoded(line, self.path) if line.startswith(_READ) else None:
                case events.Function(id=number, name=name, origin=origin):
                    self.functions[number] = name
                    if origin == "jax":  # `add` and the like: programs outside jit are many
                        self.builds[number] = -1
                case events.Stack(id=number, frames=frames):
                    frame = call_site_of(frames)
                    place = f"{Path(frame.file).name}:{frame.line}" if frame.file else ""
                    self.places[number] = place
                case events.Running(thread=thread, stage=stage, stage_ns=begin_ns) as seen:
                    seconds = (seen.at_ns - begin_ns) / 1e9
                    if stage and seconds >= least_s and (thread, begin_ns) not in self.seen:
                        self.seen.add((thread, begin_ns))
                        function = self.functions.get(seen.function, UNKNOWN.name)
                        yield Slow(stage, function, self.places.get(seen.stack, ""), seconds)

    def _often(self, line: bytes) -> Iterator[Often]:
        try:
            build = _build.decode(line)
        except msgspec.DecodeError:
            return
        if self.builds[build.function] >= 0:
            self.builds[build.function] += 1
            if self.builds[build.function] == MANY + 1:
                name = self.functions.get(build.function, UNKNOWN.name)
                yield Often(name, self.places.get(build.stack, ""))
