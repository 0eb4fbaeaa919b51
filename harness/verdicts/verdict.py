"""A verdict on a case and stage, as data: what became of it, what that rests on, what would decide.

The words for it are in :mod:`harness.output.verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from harness.errors import ExitCode
from harness.measure.machine_load import BUSY_BEFORE, BUSY_SHARE

SAME, FASTER, SLOWER, UNSURE, INCOMPARABLE = "same", "faster", "slower", "unsure", "incomparable"
BROKEN = "broken"
MORE, LESS = "more", "less"
"""Of a value that is not a time."""

KINDS = (BROKEN, SLOWER, MORE, FASTER, LESS, UNSURE, INCOMPARABLE, SAME)
"""In the order in which they are shown."""

MOVED = (SLOWER, FASTER)

CLOCK, WAITING, CALLS = "clock", "waiting", "calls"
COUNTS, PROOF, VALUE = "counts", "proof", "value"
"""Evidence: a value per process on the clock of the stage; wall time beyond CPU time; the slowest
tenth of calls; Python's calls; that nothing which determines it differs; one value a side."""

PROGRAM, INPUTS, ENVIRONMENT = "program", "inputs", "environment"
MACHINE, LOAD, PROCESSES = "machine", "load", "processes"
"""Causes. `processes`: some processes only. `machine`: the clock differed and nothing else did.
`load`: each side met another load of the machine. `processes` is of stages as a whole."""

NEEDS_PROCESSES, NEEDS_TURNS, NEEDS_RECORDS = "processes", "turns", "records"
"""What would decide: more processes, processes that take turns, a measurement by this harness."""

SECONDS = "seconds"
"""The unit of what is judged by a clock."""


FULL_SHARE = 0.5
"""Part of the cores from which on what others used no longer shows how many wait for a core."""


class Load(NamedTuple):
    """What the processes of one side met, means over them; NaN where it is not known."""

    cores: int
    """Of the machine."""
    others: float
    """How many of them others kept busy."""
    average: float
    """The load average of the minute before."""

    @property
    def is_busy(self) -> bool:
        """Whether others used so much that times are longer and scatter more."""
        if self.others == self.others:
            return self.others >= BUSY_SHARE * self.cores
        return self.average >= BUSY_BEFORE * self.cores + 1  # the process itself

    @property
    def is_full(self) -> bool:
        """Whether others left so little that a process had to wait for a core."""
        if self.others == self.others:
            return self.others >= FULL_SHARE * self.cores
        return self.average >= 2 * BUSY_BEFORE * self.cores

    @property
    def waiting_per_second(self) -> float:
        """How long a process waits for a core for each second that it computes, about."""
        measured = [one for one in (self.average, self.others) if one == one]
        return max(measured, default=0.0) / self.cores


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case and stage from A to B, or of all rows of a stage together."""

    kind: str
    """One of :data:`KINDS`; "" of a stage that was not judged as a whole."""
    evidence: str = ""
    """What it rests on; "" where nothing was compared."""
    clock: str = ""
    """`cpu` or `wall`, where times were compared."""
    cause: str = ""
    """"" where none is known to be."""
    needs: str = ""
    """What would decide it, where it is unsure."""
    problem: str = ""
    """A code for why nothing was compared (:func:`harness.verdicts.rules.without_clock`), or
    which proof excuses the clock."""
    detail: tuple[str, ...] = ()
    """What belongs to the problem: texts of the records, versions, names."""
    unit: str = SECONDS
    """Of `a` and `b`: seconds, `calls`, or that of a benchmark."""
    a: float = math.nan
    b: float = math.nan
    """What is compared: geometric means over processes, or one value."""
    ratio: float = math.nan
    """b / a; above 1 for slower or more."""
    low: float = math.nan
    high: float = math.nan
    """Its interval: 95 % for a row that does not change by what counts, corrected for the rows of
    the stage for one that does. `slower` lies above 1, `faster` below, `same` within twice what
    counts."""
    p: float = math.nan
    """For a ratio of 1."""
    p_adjusted: float = math.nan
    """Corrected for `rows`."""
    rows: int = 0
    """How many rows, or stages, were judged together."""
    cases: int = 0
    """Of a stage as a whole."""
    effect: float = math.nan
    """The smallest change that counts: 0.05 is 5 %."""
    n_a: int = 0
    n_b: int = 0
    """Processes."""
    machine: float = math.nan
    """What the clock said, b / a, though nothing that determines it differs."""
    waiting_s: float = math.nan
    """By how much wall time beyond CPU time rose."""
    calls: tuple[float, float] | None = None
    """Python's calls of both sides, where they prove a rise or a fall."""
    loads: tuple[Load, Load] | None = None
    """What both sides met, where it is unlike or excuses waiting."""
    in_turns: bool = False
    """The processes of both sides took turns."""


def exit_code(kinds: Collection[str]) -> ExitCode:
    """Return what `harness compare` ends with, of the verdicts that are shown."""
    if BROKEN in kinds:
        return ExitCode.BROKEN
    if not set(kinds) - {INCOMPARABLE}:
        return ExitCode.NOTHING
    return ExitCode.WORSE if {SLOWER, MORE} & set(kinds) else ExitCode.FINE
