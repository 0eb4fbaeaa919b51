"""`slope`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage, median

STAGE = Stage(
    name="slope",
    title="What one more call costs among many.",
    order=160,
    step="comparison",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
)
