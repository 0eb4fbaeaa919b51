"""`loop`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="loop",
    title="The plain Python loop that every process measures.",
    step="reference",
    statistic=min,
)
