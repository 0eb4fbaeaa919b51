"""`latency`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="latency",
    title="One call of a side of a comparison, until its result is there.",
    step="comparison",
    statistic=min,
)
