"""`slope`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="slope",
    title="What one more call costs among many.",
    step="comparison",
)
