"""`compile`."""

from harness.stages.stage import Stage, between

LONG_S = 30.0
"""A compile that takes longer is told while it runs, and beside the tables."""

STAGE = Stage(
    name="compile",
    title="XLA makes a program of it.",
    step="compile",
    calibrated_by="compile",
    effect=0.05,
    colour="#D55E00",
    take=lambda run: run.request_program(),
    events={"compile": 1},
    stacked=True,
    asv={"off": "compile"},
    power={"default": 0.1, "thorough": 0.05},
    clock="cpu",
    cpu_statistic=between,
)
