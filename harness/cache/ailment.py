"""What an ailment is: what it is called, how it is found, what to do, and whether it is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from packaging.version import Version

from harness.cache.put_cost import PutCost
from harness.cache.survey import Entry, Survey

SETTLE_S = 10.0
"""An entry that is younger than this may still be written."""

_HEALED = (0, 11, 1)
"""The release of JAX from which eviction accepts an entry without a time of use (jax#39883)."""

Severity = Literal["note", "unsettled", "ailing", "unusable"]


class CacheFinding(msgspec.Struct, frozen=True):
    """One thing that ails a cache.

    Attributes:
        severity: `note` leaves the cache healthy, `unsettled` may be an entry that a program is
            still writing, `ailing` costs time or entries, `unusable` means that nobody should run
            programs with it as it is.
        entries: The names of the entries concerned; none if it is about the directory.
        settled: False for an entry so young that its writer may not have finished.
    """

    kind: str
    severity: Severity
    entries: tuple[str, ...]
    evidence: str
    remedy: str
    settled: bool = True


@dataclass(frozen=True)
class Examined:
    """What the doctor looks at.

    Attributes:
        max_size_bytes: The size cap that programs set; -1 if none was given.
        put_cost: The cost of a write at its number of entries, if that was measured.
        jax: The release of JAX that will read it, such as `0.12.0.1`; empty if nobody knows.
        refused: Entries that XLA would not load, and what it said; none if that was not tried.
    """

    survey: Survey
    max_size_bytes: int = -1
    put_cost: PutCost | None = None
    settle_s: float = SETTLE_S
    jax: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def capped(self) -> bool:
        """Whether programs use it with a size cap, as was given or as the directory shows."""
        return self.max_size_bytes >= 0 or self.survey.capped

    @property
    def needs_times(self) -> bool:
        """Whether the release fails every write under a cap beside an entry without its time."""
        return bool(self.jax) and Version(self.jax).release < _HEALED

    @property
    def local(self) -> bool:
        """Whether it is on this machine, so that its permissions can be looked at."""
        return "://" not in self.survey.directory


@dataclass(frozen=True)
class Sign:
    """Where an ailment was seen; what is None is what its ailment says."""

    entries: Iterable[Entry]
    evidence: str
    severity: Severity | None = None
    remedy: str | None = None
    settled: bool = True


@dataclass(frozen=True)
class Ailment:
    """One kind of thing that may be wrong with a cache.

    Attributes:
        severity: How bad it is, where a sign does not say otherwise.
        moved_aside: Whether --quarantine moves the entries that have it.
    """

    name: str
    severity: Severity
    remedy: str
    find: Callable[[Examined], Iterator[Sign]]
    moved_aside: bool = False

    def findings(self, examined: Examined) -> Iterator[CacheFinding]:
        """Yield what the doctor says of each sign."""
        for sign in self.find(examined):
            yield CacheFinding(
                self.name,
                sign.severity or self.severity,
                tuple(entry.name for entry in sign.entries),
                sign.evidence,
                sign.remedy or self.remedy,
                sign.settled,
            )
