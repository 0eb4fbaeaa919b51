"""`dispatch`."""

from harness.stages.blocks import time_returns
from harness.stages.stage import Stage

STAGE = Stage(
    name="dispatch",
    method=2,
    title="A call, until it returns.",
    step="run",
    statistic=min,
    effect=0.25,
    colour="#CC79A7",
    take=lambda run: run.repeated("dispatch", time_returns),
    asv={"off": "dispatch"},
)
