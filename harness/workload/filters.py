"""What is wanted of workloads, cases and rows, as it is typed on a command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError


@dataclass(frozen=True)
class Filters:
    """What is wanted; all of it where nothing is said."""

    select: tuple[str, ...] = ()
    """Regular expressions for the names of workloads."""
    case: tuple[str, ...] = ()
    """`AXIS=VALUE`; of several values of one axis a case has one."""
    stage: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    scenario: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.select, self.case, self.stage, self.target, self.scenario))


def wanted_values(choices: Sequence[str]) -> dict[str, set[str]]:
    """Return the values wanted of each axis, in lower case, of `AXIS=VALUE` texts."""
    wanted: dict[str, set[str]] = {}
    for choice in choices:
        axis, equals, value = choice.partition("=")
        if not equals or not axis:
            raise UsageError(f"--case {choice!r}: expected AXIS=VALUE, such as size=1024.")
        wanted.setdefault(axis.strip().casefold(), set()).add(value.strip().casefold())
    return wanted


def is_value(value: object, texts: set[str]) -> bool:
    """Tell whether a value is one of those that were typed, in lower case."""
    return not texts.isdisjoint((str(value).casefold(), repr(value).casefold()))
