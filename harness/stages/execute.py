"""`execute`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage

STAGE = Stage(
    name="execute",
    title="A call, until its result is there.",
    order=100,
    step="run",
    statistic=min,
    calibrated_by=LOOP,
    effect=0.05,
    colour="#0072B2",
    runs_program=True,
    stacked=True,
    asv={"off": "execute"},
    power={"default": 0.2, "thorough": 0.1},
)
