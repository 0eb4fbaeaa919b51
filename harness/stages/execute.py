"""`execute`."""

from harness.stages.blocks import time_blocks
from harness.stages.stage import Stage

STAGE = Stage(
    name="execute",
    method=2,
    title="A call, until its result is there.",
    step="run",
    statistic=min,
    effect=0.15,
    colour="#0072B2",
    take=lambda run: run.repeated("execute", time_blocks),
    stacked=True,
    asv={"off": "execute"},
    power={"default": 0.2, "thorough": 0.1},
)
