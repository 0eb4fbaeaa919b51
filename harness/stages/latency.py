"""`latency`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage

STAGE = Stage(
    name="latency",
    title="One call of a side of a comparison, until its result is there.",
    order=150,
    step="comparison",
    statistic=min,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
)
