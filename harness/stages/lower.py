"""`lower`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="lower",
    title="The jaxpr becomes StableHLO.",
    order=70,
    step="build",
    statistic=median,
    calibrated_by="lower",
    effect=0.15,
    colour="#E69F00",
    stacked=True,
    asv={"off": "lower"},
    power={"default": 0.5},
)
