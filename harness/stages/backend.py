"""`backend`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage, median

STAGE = Stage(
    name="backend",
    title="Waking JAX's back end.",
    order=20,
    step="process",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
    asv={"off": "backend"},
)
