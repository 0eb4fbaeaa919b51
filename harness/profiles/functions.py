"""What was built of each function: counted, in one process or many.

A function is the same in all processes: it is identified by its file, its qualified name, its line
and the name that JAX calls it by.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.jaxhooks.events import Function, Started
from harness.profiles.causes.cause import Cause
from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.profiles.pieces import STAGES

COUNTS = ("builds", "traces", "lowers", "compiles", "loads")
"""What is exact: any difference between two profiles is a change."""

SIZES = ("code_bytes", "temp_bytes")


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
    examples: dict[tuple[str, str], list[tuple[Cause, Built]]] = field(default_factory=dict)
    """Where causes are compared: each build with its cause, by kind and argument."""

    @property
    def eager(self) -> bool:
        """Whether it is JAX's own: a program of one operation, that no `jax.jit` asked for."""
        return self.function.origin == "jax"

    @property
    def requests(self) -> int:
        """How often an executable was asked for: compiled, or loaded from the persistent cache."""
        return sum(built.times("compile") for built in self.builds)

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """How often it was built, and each stage was really done, by :data:`COUNTS`.

        It is traced alone or inside another; it is loaded where the persistent cache had it.
        """
        builds, loads = self.builds, sum(built.hits for built in self.builds)
        traces = sum(built.times("trace") > 0 for built in builds) + self.inner_traces
        lowers = sum(built.times("lower") for built in builds)
        numbers = len(builds), traces, lowers, self.requests - loads, loads
        return dict(zip(COUNTS, numbers, strict=True))

    @functools.cached_property
    def seconds(self) -> dict[str, float]:
        """What each of :data:`.pieces.STAGES` took in all its builds."""
        return {stage: sum(one.stage_ns(stage) for one in self.builds) / 1e9 for stage in STAGES}

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """The code of all its executables, and temporary memory of the one that needs most.

        In bytes; 0 where the backend does not say.
        """
        programs = [built.line.program for built in self.builds if built.line.program]
        code, temporary = ([getattr(one, name) for one in programs] for name in SIZES)
        return dict(zip(SIZES, (sum(code), max(temporary, default=0)), strict=True))

    @property
    def total_s(self) -> float:
        """All stages together."""
        return sum(self.seconds.values())

    @functools.cached_property
    def settings(self) -> dict[str, str]:
        """What `jax.jit` was given."""
        given = (built.settings.jit for built in self.builds if built.settings is not None)
        return {name: value for jit in given for name, value in jit.items()}

    @functools.cached_property
    def causes(self) -> Counter[tuple[str, str]]:
        """How many builds have each cause of :attr:`examples`."""
        return Counter({key: len(pairs) for key, pairs in self.examples.items()})

    @property
    def label(self) -> str:
        """`train.py:loss`: what a budget calls it."""
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
    counted: dict[Key, Counted] = {}

    def of(function: Function, started: Started) -> Counted:
        place = place_of(function.file, started.cwd, started.argv)
        key = Key(place, function.qualname, function.name, function.line)
        return counted.setdefault(key, Counted(key, function))

    for built in builds:
        of(built.function, built.process.started).builds.append(built)
        for inner in built.line.inner:
            function = built.process.functions.get(inner.function)
            if function is not None and inner.times:
                of(function, built.process.started).inner_traces += inner.times
    return list(counted.values())
