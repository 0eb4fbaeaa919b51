"""`first_call`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="first_call",
    title="The first call of a jitted function, until its result is there.",
    order=120,
    step="first_call",
    statistic=median,
    calibrated_by="compile",
    effect=0.1,
    colour="#999999",
    asv={"cold": "first_call_cold", "warm": "first_call_warm"},
)
