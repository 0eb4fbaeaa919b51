"""Builds by function, kind of cause and argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.profiles.model import Built, seconds_of

if TYPE_CHECKING:
    from harness.profiles.causes.cause import Cause
    from harness.profiles.recorded import Recorded
    from harness.watch import events


@dataclass(frozen=True)
class BuildGroup:
    """Builds of one function that have one cause."""

    cause: Cause
    """Of the dearest of them."""
    builds: tuple[Built, ...]
    values: tuple[str, ...]
    """What the argument or setting was, over all of them and what they were compared with."""

    @property
    def seconds(self) -> float:
        """What building took."""
        return seconds_of(self.builds)

    @property
    def function(self) -> events.Function:
        """What was built."""
        return self.builds[0].function


def function_key(function: events.Function) -> tuple[str, str, int, str]:
    """Return what tells functions apart, in whatever process: name, place, and what is around."""
    return function.name, function.file, function.line, function.through


def groups(profile: Recorded, builds: Iterable[Built]) -> list[BuildGroup]:
    """Return builds grouped by function, kind of cause, and argument; the dearest first.

    Functions of one :func:`function_key` are one, in whatever process.
    """
    found: dict[tuple[object, ...], list[tuple[Built, Cause]]] = {}
    for built in builds:
        cause = profile.cause_of(built)
        key = (*function_key(built.function), cause.kind, cause.argument)
        found.setdefault(key, []).append((built, cause))
    rows = []
    for pairs in found.values():
        dearest = max(pairs, key=lambda pair: pair[0].build_ns)[1]
        values = dict.fromkeys(
            value for _, cause in pairs for value in (cause.before, cause.after) if value
        )
        rows.append(BuildGroup(dearest, tuple(built for built, _ in pairs), tuple(values)))
    return sorted(rows, key=lambda group: -group.seconds)


def unexplained(profile: Recorded) -> list[Built]:
    """Return the builds whose cause the profile does not know."""
    return [built for built in profile.builds if profile.cause_of(built).kind == "unexplained"]
