"""What was built of each function: counted, in one process or many.

A function is the same in all processes: it is told apart by its file, its qualified name, its line
and the name that JAX calls it by.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.watch.events import Function, Started


class Key(NamedTuple):
    """What makes a function the same one in another process."""

    place: str
    """Its file, relative to the program's folder."""
    qualname: str
    name: str
    line: int


@dataclass
class Counted:
    """A function, and all builds of it."""

    key: Key
    function: Function
    builds: list[Built] = field(default_factory=list)
    inner_traces: int = 0
    """How often it was traced as a part of another function."""

    @property
    def eager(self) -> bool:
        """Whether it is JAX's own: a program of one operation, that no `jax.jit` asked for."""
        return self.function.origin == "jax"

    @property
    def traces(self) -> int:
        """How often the function itself was traced, alone or inside another."""
        return sum(built.times("trace") > 0 for built in self.builds) + self.inner_traces

    @property
    def lowers(self) -> int:
        """How often it was lowered."""
        return sum(built.times("lower") for built in self.builds)

    @property
    def requests(self) -> int:
        """How often an executable was asked for: compiled, or loaded from the persistent cache."""
        return sum(built.times("compile") for built in self.builds)

    @property
    def loads(self) -> int:
        """How many of the requests the persistent cache answered."""
        return sum(built.hits for built in self.builds)

    @property
    def compiles(self) -> int:
        """How often XLA compiled it."""
        return self.requests - self.loads

    @property
    def code_bytes(self) -> int:
        """The machine code of its executables together; 0 where the backend does not say."""
        return sum(built.line.program.code_bytes for built in self.builds if built.line.program)

    @property
    def temp_bytes(self) -> int:
        """The most memory that one of its executables needs for intermediate results."""
        programs = (built.line.program for built in self.builds)
        return max((program.temp_bytes for program in programs if program is not None), default=0)

    def seconds(self, stage: str) -> float:
        """Return what one of :data:`.pieces.STAGES` took in all its builds."""
        return sum(built.stage_ns(stage) for built in self.builds) / 1e9

    @property
    def label(self) -> str:
        """`train.py:loss`: what a budget file calls it."""
        return f"{self.key.place}:{self.key.qualname}" if self.key.place else self.key.qualname

    @property
    def shown(self) -> str:
        """`loss` (train.py:12): what a reader looks for."""
        name = f"`{self.key.name if self.key.name != 'wrapped' else self.key.qualname}`"
        if not self.key.place:
            return name
        line = f":{self.key.line}" if self.key.line else ""
        return f"{name} ({self.key.place}{line})"

    def names(self) -> tuple[str, ...]:
        """Return all that a user may call it by."""
        qualname, file = self.key.qualname, self.function.file
        places = dict.fromkeys((self.key.place, os.path.basename(file), file))
        started = self.builds[0].process.started if self.builds else None
        if started is not None and file.startswith(started.cwd + os.sep):
            places[os.path.relpath(file, started.cwd)] = None
        labels = (f"{place}:{qualname}" for place in places if place)
        return tuple(dict.fromkeys((self.label, self.key.name, qualname, *labels)))


def by_function(builds: Iterable[Built]) -> list[Counted]:
    """Return what was built of each function, in the order of the first build."""
    found: dict[Key, Counted] = {}

    def of(function: Function, started: Started) -> Counted:
        place = place_of(function.file, started.cwd, started.argv)
        key = Key(place, function.qualname, function.name, function.line)
        return found.setdefault(key, Counted(key, function))

    for built in builds:
        of(built.function, built.process.started).builds.append(built)
        for inner in built.line.inner:
            function = built.process.functions.get(inner.function)
            if function is not None and inner.times:
                of(function, built.process.started).inner_traces += inner.times
    return list(found.values())
