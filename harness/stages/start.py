"""`start`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage, median

STAGE = Stage(
    name="start",
    title="From the start of the process until the first result is there.",
    order=130,
    step="first_call",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#B8A100",
    asv={"cold": "start_cold", "warm": "start_warm"},
)
