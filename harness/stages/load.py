"""`load`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="load",
    title="The program comes from the persistent cache.",
    order=110,
    step="load",
    statistic=median,
    calibrated_by="compile",
    effect=0.1,
    colour="#009E73",
    take=lambda run: run.request_program(),
    stacked=True,
    asv={"warm": "load"},
)
