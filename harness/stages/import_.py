"""`import`."""

from __future__ import annotations

from harness.stages.stage import LOOP, Stage, median

STAGE = Stage(
    name="import",
    title="What `import jax` takes.",
    order=10,
    step="process",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#999999",
    asv={"off": "import"},
)
