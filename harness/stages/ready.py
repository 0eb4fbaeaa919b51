"""`ready`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="ready",
    title="From the start of the process until it can measure.",
    step="process",
    asv={"off": "ready"},
)
