"""`loop`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage

STAGE = Stage(
    name="loop",
    title="The plain Python loop that every process measures.",
    order=140,
    step="reference",
    statistic=min,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
)
