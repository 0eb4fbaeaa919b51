"""What follows from a profile: builds by cause, what a hit saved, what is lacking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.profiles.model import Built, seconds_of
from harness.profiles.names import shortened
from harness.records.units import counted, times_text
from harness.watch.events import MOST_STACKS, Backend, Function, Import, Request

if TYPE_CHECKING:
    from harness.profiles.causes.cause import Cause
    from harness.profiles.recorded import Recorded

_NAMED = 5
"""Processes that are named."""


@dataclass(frozen=True)
class BuildGroup:
    """Builds of one function that have one cause."""

    cause: Cause
    """Of the dearest of them at the line that took most."""
    builds: tuple[Built, ...]
    values: tuple[str, ...]
    """What the argument or setting was, over all of them and what they were compared with."""

    @property
    def seconds(self) -> float:
        """What building took."""
        return seconds_of(self.builds)

    @property
    def function(self) -> Function:
        """What was built."""
        return self.builds[0].function


def function_key(function: Function) -> tuple[str, str, int, str]:
    """Return what tells functions apart, in whatever process: name, place, and what is around."""
    return function.name, function.file, function.line, function.through


def groups(profile: Recorded, builds: Iterable[Built]) -> list[BuildGroup]:
    """Return builds grouped by function, cause, argument, and having a remedy; the dearest first.

    Static arguments that are made anew are apart by what they are. Functions of one
    :func:`function_key` are one, in whatever process.
    """
    found: dict[tuple[object, ...], list[tuple[Built, Cause]]] = {}
    for built in builds:
        cause = profile.cause_of(built)
        what = function_key(built.function), bool(cause.remedy)
        key = (*what, cause.kind, cause.argument, cause.defined)
        found.setdefault(key, []).append((built, cause))
    rows = []
    for pairs in found.values():
        taken: Counter[str] = Counter()
        for built, _ in pairs:
            taken[built.site] += built.build_ns
        dearest = max(pairs, key=lambda pair: (taken[pair[0].site], pair[0].build_ns))[1]
        values = dict.fromkeys(
            value for _, cause in pairs for value in (cause.before, cause.after) if value
        )
        rows.append(BuildGroup(dearest, tuple(built for built, _ in pairs), tuple(values)))
    return sorted(rows, key=lambda group: -group.seconds)


def unexplained(profile: Recorded) -> list[Built]:
    """Return the builds whose cause the profile does not know."""
    return [built for built in profile.builds if profile.cause_of(built).kind == "unexplained"]


def requests_of(builds: Iterable[Built]) -> Iterator[Request]:
    """Yield every compile request."""
    for built in builds:
        yield from built.line.requests


def damage(profile: Recorded) -> Iterator[str]:
    """Yield what is not whole in a profile, a sentence each."""
    if profile.is_open:
        yield "The profile is still open: this is what was built until now."
    if any(
        one.started.how == "context" and one.builds and not one.of(Import) and not one.of(Backend)
        for one in profile.processes
    ):
        yield (
            "JAX was in use before the profile was opened: what it had built by then is not known, "
            "so a first build may be one again."
        )
    cut = [str(one.started.pid) for one in profile.processes if one.ended is None]
    if cut and not profile.is_open:
        names = ", ".join(cut[:_NAMED]) + "…" * (len(cut) > _NAMED)
        yield (
            f"{counted(len(cut), 'log')} cut off (process {names}): killed, or still "
            "running. What is told reaches until its last line."
        )
    if any(len(process.stacks) > MOST_STACKS for process in profile.processes):
        yield (
            f"After {MOST_STACKS:,} stacks of a process only the innermost line of the program was "
            "written: lines are right, who called them is not known."
        )
    if profile.run_damage:
        yield profile.run_damage
    if profile.broken_lines:
        yield f"{counted(profile.broken_lines, 'line')} of the logs could not be read."
    ends = [process.ended for process in profile.processes if process.ended is not None]
    if lost := sum(end.lost for end in ends):
        yield f"{counted(lost, 'line')} could not be written: counts and seconds are too low."
    failures = Counter(failure for end in ends for failure in end.failures)
    if failures:
        first = shortened(next(iter(failures)), 80)
        yield f"The profile itself failed {times_text(failures.total())}: {first}"
