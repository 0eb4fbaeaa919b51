"""`dispatch`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage

STAGE = Stage(
    name="dispatch",
    title="A call, until it returns.",
    order=90,
    step="run",
    statistic=min,
    calibrated_by=LOOP,
    effect=0.25,
    colour="#CC79A7",
    runs_program=True,
    asv={"off": "dispatch"},
)
