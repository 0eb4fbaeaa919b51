"""`ready`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage, median

STAGE = Stage(
    name="ready",
    title="From the start of the process until it can measure.",
    order=50,
    step="process",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
    asv={"off": "ready"},
)
