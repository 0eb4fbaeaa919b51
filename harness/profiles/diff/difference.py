"""What changed between two profiles, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.profiles.causes.cause import Cause
from harness.profiles.functions import Counted

NOT_KNOWN = "not recorded"


class Fact(NamedTuple):
    """One thing that is said of both."""

    name: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """Whether both say the same, or one of them does not say."""
        return self.a == self.b or NOT_KNOWN in (self.a, self.b)


class Total(NamedTuple):
    """A number of everything together; seconds where the name ends in `_s`."""

    name: str
    a: float
    b: float


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
    answer: list[str]
    """What changed, in sentences, what matters most first."""
    totals: tuple[Total, ...]
    facts: tuple[Fact, ...]
    """Versions, device, machine, command, settings."""
    warnings: tuple[str, ...]
    """What makes the two hard to compare."""

    @property
    def changed(self) -> list[Change]:
        """The functions that are not the same."""
        return [change for change in self.changes if change.status != "same"]
