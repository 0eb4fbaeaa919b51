"""`load`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="load",
    title="The program is read: from the persistent cache, or a serialised executable.",
    step="load",
    calibrated_by="compile",
    colour="#009E73",
    take=lambda run: run.request_program(),
    stacked=True,
    asv={"warm": "load"},
)
