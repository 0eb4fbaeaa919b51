"""`trace`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="trace",
    title="The function becomes a jaxpr.",
    order=60,
    step="build",
    statistic=median,
    calibrated_by="trace",
    effect=0.1,
    colour="#56B4E9",
    stacked=True,
    asv={"off": "trace"},
    power={"default": 0.5},
)
