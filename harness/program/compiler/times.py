"""What a record keeps of the inside of a compile: seconds of groups, and of the slowest passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from harness.program.compiler.tree import group_of

if TYPE_CHECKING:
    from harness.program.compiler.inside import Inside, PassBranch

MOST_PASSES = 30

_DIGITS = 7
"""Of seconds, behind the point."""


class CompileTime(msgspec.Struct, omit_defaults=True):
    """Seconds of one compile, in a group or in a pass."""

    group: str
    part: str = ""
    """Of the group."""
    name: str = ""
    """Of the pass; "" for all of the group."""
    wall_s: float = 0.0
    """Of a pass, as `threads_s`, without what is inside of it."""
    threads_s: float = 0.0
    """Of all threads."""
    count: int = 0
    """How often the pass ran."""


class CompileTimes(msgspec.Struct, omit_defaults=True):
    """The inside of one compile that was not timed, by groups and passes."""

    groups: list[CompileTime] = []
    """They sum to the whole."""
    passes: list[CompileTime] = []
    """Those that threads worked on for longest, at most :data:`MOST_PASSES`."""
    reason: str = ""
    """Why nothing is known."""

    @property
    def threads_s(self) -> float:
        """Seconds of all threads."""
        return sum(one.threads_s for one in self.groups)


def compile_times(inside: Inside) -> CompileTimes:
    """Return what is kept of the inside of a compile."""
    groups = [
        CompileTime(one.name, one.part, "", _short(one.wall_s), _short(one.threads_s))
        for one in inside.groups
    ]
    sums: dict[tuple[str, str, str], CompileTime] = {}
    for one in _own(inside.tree, ("", "")):
        total = sums.setdefault((one.group, one.part, one.name), one)
        if total is not one:
            total.wall_s += one.wall_s
            total.threads_s += one.threads_s
            total.count += one.count
    slowest = sorted(sums.values(), key=lambda one: -one.threads_s)[:MOST_PASSES]
    for one in slowest:
        one.wall_s, one.threads_s = _short(one.wall_s), _short(one.threads_s)
    return CompileTimes(groups, slowest)


def _own(branch: PassBranch, parent: tuple[str, str]) -> Iterator[CompileTime]:
    """Yield what a branch took by itself, and each that is inside of it."""
    part = group_of(branch.name, parent, is_pipeline=False)[1]
    threads_s = branch.threads_s - sum(one.threads_s for one in branch.inside)
    yield CompileTime(branch.group, part, branch.name, branch.own_wall_s, threads_s, branch.count)
    for one in branch.inside:
        yield from _own(one, (branch.group, part))


def _short(seconds: float) -> float:
    return round(seconds, _DIGITS)
