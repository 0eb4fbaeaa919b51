"""`first_lower`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="first_lower",
    title="Lowering a trivial program, the first of the process.",
    order=30,
    step="process",
    statistic=median,
    calibrated_by="lower",
    effect=0.1,
    colour="#999999",
    asv={"off": "first_lower"},
)
