"""`first_compile`."""

from __future__ import annotations

from harness.stages.stage import Stage, median

STAGE = Stage(
    name="first_compile",
    title="Compiling a trivial program, the first of the process.",
    order=40,
    step="process",
    statistic=median,
    calibrated_by="compile",
    effect=0.1,
    colour="#999999",
    asv={"off": "first_compile"},
)
