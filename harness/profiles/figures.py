"""What follows from a profile: builds by cause, what a hit saved, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.jaxhooks.events import MOST_STACKS, Backend, Function, Import, Request
from harness.profiles.model import Built, seconds_of

if TYPE_CHECKING:
    from harness.profiles.causes.cause import Cause, Shape
    from harness.profiles.recorded import Recorded


@dataclass(frozen=True)
class BuildGroup:
    """Builds of one function that have one cause."""

    built: Built
    """The slowest of them at the line that took most."""
    cause: Cause
    builds: tuple[Built, ...]
    values: tuple[str, ...]
    """What the argument or setting was, over all of them and what they were compared with."""
    shapes: tuple[Shape, ...]

    @property
    def seconds(self) -> float:
        """What building took."""
        return seconds_of(self.builds)

    @property
    def function(self) -> Function:
        """What was built."""
        return self.builds[0].function


def function_key(function: Function) -> tuple[object, ...]:
    """Return what tells functions apart, in whatever process: name, place, and what is around."""
    return function.name, function.file, function.line, function.around


def groups(profile: Recorded, builds: Iterable[Built]) -> list[BuildGroup]:
    """Return builds grouped by function, cause, argument, and having a remedy; the slowest first.

    Static arguments that are recreated are separate by what they are. Functions of one
    :func:`function_key` are one, in whatever process.
    """
    pairs_of: dict[tuple[object, ...], list[tuple[Built, Cause]]] = {}
    for built in builds:
        cause = profile.cause_of(built)
        what = function_key(built.function), bool(cause.remedy)
        key = (*what, cause.kind, cause.argument, cause.recreated)
        pairs_of.setdefault(key, []).append((built, cause))
    return sorted(map(_group, pairs_of.values()), key=lambda group: -group.seconds)


def _group(pairs: list[tuple[Built, Cause]]) -> BuildGroup:
    taken: Counter[str] = Counter()
    for built, _ in pairs:
        taken[built.site] += built.build_ns
    slowest = max(pairs, key=lambda pair: (taken[pair[0].site], pair[0].build_ns))
    values = dict.fromkeys(value for _, cause in pairs for value in cause.values if value)
    shapes = dict.fromkeys(shape for _, cause in pairs for shape in cause.sizes)
    return BuildGroup(*slowest, tuple(built for built, _ in pairs), tuple(values), tuple(shapes))


def unexplained(profile: Recorded) -> list[Built]:
    """Return the builds whose cause the profile does not know."""
    return [built for built in profile.builds if profile.cause_of(built).kind == "unexplained"]


def requests_of(builds: Iterable[Built]) -> Iterator[Request]:
    """Yield every compile request."""
    for built in builds:
        yield from built.line.requests


DefectKind = Literal[
    "open", "late", "cut off", "stacks", "run", "unreadable lines", "lost lines", "failures"
]
"""What is not whole in a profile.

- `open`: it is still recorded; `late`: JAX was in use before; `cut off`: processes without an end.
- `stacks`: more stacks than are written whole; `run`: the file about the command is damaged.
- `unreadable lines`, `lost lines`: of the logs; `failures`: of the profile itself.
"""


class Defect(NamedTuple):
    """One thing that is not whole."""

    kind: DefectKind
    number: int = 0
    names: tuple[str, ...] = ()
    """Numbers of processes, or what went wrong."""


def damage(profile: Recorded) -> Iterator[Defect]:
    """Yield what is not whole in a profile."""
    if profile.is_open:
        yield Defect("open")
    if any(
        one.started.how == "context" and one.builds and not one.of(Import) and not one.of(Backend)
        for one in profile.processes
    ):
        yield Defect("late")
    cut = tuple(str(one.started.pid) for one in profile.processes if one.ended is None)
    if cut and not profile.is_open:
        yield Defect("cut off", len(cut), cut)
    if any(len(process.stacks) > MOST_STACKS for process in profile.processes):
        yield Defect("stacks", MOST_STACKS)
    if profile.run_damage:
        yield Defect("run", names=(profile.run_damage,))
    if profile.broken_lines:
        yield Defect("unreadable lines", profile.broken_lines)
    ends = [process.ended for process in profile.processes if process.ended is not None]
    if lost := sum(end.lost for end in ends):
        yield Defect("lost lines", lost)
    if failures := [failure for end in ends for failure in end.failures]:
        yield Defect("failures", len(failures), tuple(dict.fromkeys(failures)))


def is_unknown(profile: Recorded) -> bool:
    """Return whether a process imported JAX, or tried to, and could not be recorded from there."""
    ends = [process.ended for process in profile.processes if process.ended is not None]
    failed = any(end.failures for end in ends)
    return failed and not profile.builds and not any(p.of(Import) for p in profile.processes)
