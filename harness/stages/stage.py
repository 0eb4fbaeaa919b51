"""What a stage is: one step of a program's life, and everything that is known of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

median = statistics.median


def between(values: Sequence[float]) -> float:
    """Return what lies half way, in logarithms, between the least value and the geometric mean.

    A long stage meets quick and slow moments alike, so its mean says more than that of a short one,
    of which the least is the one that nothing disturbed.
    """
    return math.sqrt(min(values) * statistics.geometric_mean(values))


LOOP = "loop"
"""The plain Python loop: what stages are divided by that JAX has no part in."""

Step = Literal[
    "process",
    "build",
    "compile",
    "run",
    "compute",
    "load",
    "first_call",
    "start",
    "reference",
    "comparison",
]
"""The part of a process that takes a stage. A scenario names the steps that its processes have;
`first_call` and `start` have a process for each sample; `process` is paid once a process,
`reference` is the reference program's alone, and `comparison` is what only a side of a comparison
takes."""

CALLS: tuple[Step, ...] = ("run", "compute")
"""The steps in which a program is called again and again."""

Clock = Literal["wall", "cpu"]
"""Seconds as they pass, or those that the process computes, all of its threads together."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage. Whatever lists stages asks :mod:`harness.stages.registry`."""

    name: str
    method: int = 1
    """Raised where its numbers mean something else: they are not compared with those before."""
    title: str
    """What it measures, in one short sentence: for tables, legends and the docs."""
    step: Step
    statistic: Callable[[Sequence[float]], float] = median
    """The one value that a process stands for, of its samples: `min` where the tail comes from
    handing work between threads and says more about the machine's other guests, else the median."""
    calibrated_by: str = LOOP
    """The stage of the reference program that it is divided by, or :data:`LOOP`."""
    effect: float = 0.1
    """The smallest change that counts: 0.05 is 5 % more time. About what 95 % of the ratios of
    identical arms, calibrated, stayed within on two shared cores."""
    colour: str = "#999999"
    """Of Okabe and Ito's palette where it has one: told apart with any colour vision."""
    take: Callable[[Any], None] | None = None
    """Takes the stage in a :class:`harness.stages.passes.Pass`: calls its `timed` or one of its
    like. None for what is taken elsewhere: by the process, or by a side of a comparison."""
    events: Mapping[str, int] = field(default_factory=dict)
    """What JAX reports while a sample is taken, no more and no less: the proof of its label."""
    stacked: bool = False
    """It follows the other stacked ones, and together they are the time to the first result."""
    asv: Mapping[str, str] = field(default_factory=dict)
    """The metric that asv shows of it, by scenario; none where it is not shown."""
    power: Mapping[str, float] = field(default_factory=dict)
    """The slow-down that `harness aa --power` puts in, by effort: 0.2 for a fifth more time."""
    counted: str = ""
    """The fact of the case that counts Python's calls in it; none where they are not its work."""
    clock: Clock = "wall"
    """The clock that verdicts rest on. `cpu` where a stage is work of the process alone: what else
    runs on the machine lengthens it less."""
    cpu_statistic: Callable[[Sequence[float]], float] = min
    """What makes one CPU time of those of a process's visits: the least; or :func:`between`."""

    @property
    def runs_program(self) -> bool:
        """Whether a finished program runs or is read, and nothing else is done.

        With an equal program, a changed time is then the environment's doing. Not so where JAX or
        XLA work, which may change for an equal program.
        """
        return self.step in ("run", "compute", "load")


class Unable(StrEnum):
    """Why a program is not computed on one thread."""

    NOT_A_CPU = "not_a_cpu"
    NO_CLIENT = "no_second_client"
    SEVERAL_DEVICES = "several_devices"
    CALLS_BACK = "calls_back"
    NOT_LOADED = "not_loaded"
    OTHER_ARGUMENTS = "other_arguments"


WHY: Mapping[str, str] = {
    Unable.NOT_A_CPU: "compute is measured on a CPU, on one thread",
    Unable.NO_CLIENT: "this JAX makes no second client of the CPU",
    Unable.SEVERAL_DEVICES: "the program runs on several devices",
    Unable.CALLS_BACK: "the program calls Python back, or has its calls in an order",
    Unable.NOT_LOADED: "XLA does not serialise the program",
    Unable.OTHER_ARGUMENTS: "the program takes other arguments than the function",
}
