"""What a machine's own A/A measurements say of its verdicts: how often they are wrong.

`harness aa` writes such a file per machine into `results/MACHINE/aa/`; comparisons read the newest
that fits, print its rates, and take from it how much a case scatters between identical arms.
"""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = 1
"""Version of the layout of :class:`ErrorRates`."""


class Rate(msgspec.Struct):
    """How many of how many, and the 95 % interval of the share (Clopper and Pearson)."""

    count: int
    of: int
    low: float
    high: float


class Noise(msgspec.Struct):
    """How one stage of a case differs between arms that are the same."""

    workload: str
    version: str
    axes: dict[str, Any]
    target: str
    transform: str
    precision: str
    scenario: str
    stage: str
    ratios: list[float]
    """Of each pair of arms: calibrated value of the second / of the first."""


class Power(msgspec.Struct):
    """How often a slow-down that was put in was found."""

    stage: str
    effect: float
    """The slow-down: 0.2 for a fifth more time."""
    effort: str
    found: Rate


class ErrorRates(msgspec.Struct):
    """The error rates of one machine, measured at one effort."""

    schema: int
    machine: str
    env: str
    commit: str
    started_at_ms: int
    effort: str
    pairs: int
    """Pairs of identical arms, one measured after the other."""
    flagged: Rate
    """Rows of those pairs that were called faster or slower."""
    flagged_by_stage: dict[str, Rate]
    flagged_by_asv: Rate
    """The same rows by asv's rule: `asv.commands.compare` with its factor and its rank test."""
    noise: list[Noise]
    power: list[Power]
    asv_by_stage: dict[str, Rate] = msgspec.field(default_factory=dict)
    narrowed: bool = False
    """A user chose some workloads, cases or targets: a run over all says more."""
