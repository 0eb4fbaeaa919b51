"""What a sweep tells while it measures, and what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.measure.estimate import Expected
from harness.records.schema import Problems, Record


@dataclass(frozen=True)
class Turns:
    """How many rounds a comparison in turns may have, and how long each takes."""

    look: int
    """After so many, the clocks are looked at next."""
    limit: int
    round_s: float | None
    """What the rounds so far took on average; None before the first. Later ones measure less where
    some workloads are decided."""
    most_s: float | None
    """How long all may take; None for as long as they do."""


@dataclass
class Progress:
    """What a sweep is at: told after every message of a measuring process."""

    workload: str
    case: str
    stage: str
    process: int
    done: int
    total: int
    record: Record | None = None
    """A record that was just stored."""
    machine: str = ""
    """Which of several machines measures; empty where there is one."""
    warning: str = ""
    """What is out of the ordinary."""
    expected: Expected | None = None
    """Where a sweep begins to measure: how long that will take."""
    turns: Turns | None = None
    """Where rounds of a comparison in turns begin, and after the first: how many there may be."""
    left_s: float | None = None
    """How long the rest will take; None where too little has been measured to know."""


def warn(on_progress: Callable[[Progress], None]) -> Callable[[str], None]:
    """Return what tells of something that concerns no case."""
    return lambda text: on_progress(Progress("", "", "", 0, 0, 0, warning=text))


@dataclass
class Outcome:
    """What a sweep did."""

    records: list[Record] = field(default_factory=list)
    """Every record that answers for what was asked, measured now or before."""
    measured: int = 0
    reused: int = 0
    failed: list[Record] = field(default_factory=list)
    refused: list[Record] = field(default_factory=list)
    """Records of cases that are measured but for a stage of which no sample could be proven."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Workloads that no target is there for, and why."""
    wide: list[str] = field(default_factory=list)
    """Cases whose interval stayed too wide when `thorough` reached its limit."""
    edited: list[str] = field(default_factory=list)
    """Code that changed during the sweep, so that what had run it was measured again."""
    unexplained: list[str] = field(default_factory=list)
    """Cases whose program is another one than before, though no code is."""
    problems: Problems = field(default_factory=Problems)
    others_cores: float = 0.0
    """How many cores of this machine others kept busy meanwhile, on average."""
