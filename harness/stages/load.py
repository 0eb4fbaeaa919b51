"""`load`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="load",
    title="The program comes from the persistent cache.",
    step="load",
    calibrated_by="compile",
    colour="#009E73",
    take=lambda run: run.request_program(),
    stacked=True,
    asv={"warm": "load"},
)
