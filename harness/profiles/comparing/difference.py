"""Compare two profiles: functions, totals, and what they were recorded with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from harness.profiles.causes.kinds import Cause
from harness.profiles.comparing import surroundings
from harness.profiles.comparing.matching import pairs
from harness.profiles.comparing.surroundings import Fact, Total
from harness.profiles.counting import STAGES, Counted, by_function
from harness.profiles.model import Profile

COUNTS = ("builds", "traces", "lowers", "compiles", "loads")
"""What is exact: any difference is a change."""

SIZES = ("code_bytes", "temp_bytes")

Status = Literal["changed", "new", "gone", "same"]


@dataclass(frozen=True)
class Side:
    """What was built of a function in one profile."""

    counts: dict[str, int]
    """By :data:`COUNTS`."""
    seconds: dict[str, float]
    """By stage, of one run: without an error bar."""
    sizes: dict[str, int]
    """`code_bytes` of all its executables, `temp_bytes` of the one that needs most."""
    causes: dict[tuple[str, str], int]
    """Builds by (kind, argument) of their cause."""
    examples: dict[tuple[str, str], Cause]
    """The first cause of each."""
    settings: dict[str, str]
    """What `jax.jit` was given."""

    @property
    def total_s(self) -> float:
        """All stages together."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Change:
    """A function in two profiles."""

    function: Counted
    """As B has it; as A has it where B has none."""
    a: Side
    b: Side
    status: Status

    @property
    def gained(self) -> dict[tuple[str, str], int]:
        """By how much each cause's builds became more in B, or fewer (negative)."""
        keys = dict.fromkeys((*self.b.causes, *self.a.causes))
        found = {key: self.b.causes.get(key, 0) - self.a.causes.get(key, 0) for key in keys}
        return {key: count for key, count in found.items() if count}

    @property
    def weight(self) -> tuple[float, int]:
        """How much it matters: seconds of one side beyond the other's, then builds."""
        builds = self.b.counts["builds"] - self.a.counts["builds"]
        return abs(self.b.total_s - self.a.total_s), abs(builds)


@dataclass(frozen=True)
class Difference:
    """What changed from profile A to profile B."""

    changes: tuple[Change, ...]
    """Every function of either, what matters most first, what is the same last."""
    totals: tuple[Total, ...]
    facts: tuple[Fact, ...]
    """Versions, device, machine, command, settings."""
    warnings: tuple[str, ...]
    """What makes the two hard to compare."""

    @property
    def changed(self) -> list[Change]:
        """The functions that are not the same."""
        return [change for change in self.changes if change.status != "same"]

    @property
    def answer(self) -> list[str]:
        """What changed, in sentences, what matters most first."""
        from harness.profiles.comparing.answer import answer

        return answer(self)


def compare(a: Profile, b: Profile) -> Difference:
    """Compare two profiles.

    Functions are told apart by file, relative to the program's folder, and qualified name; where
    several have one name, by the nearest line. Counts, causes, sizes of code and what `jax.jit` was
    given are compared exactly. Seconds are of one run each, have no error bar, and change nothing.
    """
    functions = by_function(a.builds), by_function(b.builds)
    changes = [
        _change(one, side(one, a), other, side(other, b)) for one, other in pairs(*functions)
    ]
    changes.sort(key=lambda change: (change.status == "same", *(-w for w in change.weight)))
    return Difference(
        tuple(changes),
        surroundings.totals(a, functions[0], b, functions[1]),
        surroundings.facts(a, b),
        surroundings.warnings(a, b),
    )


def side(one: Counted | None, profile: Profile) -> Side:
    """Return what was built of a function; of none where it is not in the profile."""
    if one is None:
        counts, sizes = dict.fromkeys(COUNTS, 0), dict.fromkeys(SIZES, 0)
        return Side(counts, dict.fromkeys(STAGES, 0.0), sizes, {}, {}, {})
    causes: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], Cause] = {}
    settings: dict[str, str] = {}
    for built in one.builds:
        cause = profile.cause_of(built)
        causes[cause.kind, cause.argument] += 1
        examples.setdefault((cause.kind, cause.argument), cause)
        if built.settings is not None:
            settings.update(built.settings.jit)
    counts = {
        "builds": len(one.builds),
        "traces": one.traces,
        "lowers": one.lowers,
        "compiles": one.compiles,
        "loads": one.loads,
    }
    seconds = {stage: one.seconds(stage) for stage in STAGES}
    sizes = {"code_bytes": one.code_bytes, "temp_bytes": one.temp_bytes}
    return Side(counts, seconds, sizes, dict(causes), examples, settings)


def _change(one: Counted | None, a: Side, other: Counted | None, b: Side) -> Change:
    shown = other or one
    assert shown is not None
    status: Status = "same"
    if one is None:
        status = "new"
    elif other is None:
        status = "gone"
    elif _exact(a) != _exact(b):
        status = "changed"
    return Change(shown, a, b, status)


def _exact(side: Side) -> tuple[dict[str, int], dict[tuple[str, str], int], Any, Any]:
    return side.counts, side.causes, side.sizes, side.settings
