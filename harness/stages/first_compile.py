"""`first_compile`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="first_compile",
    title="Compiling a trivial program, the first of the process.",
    step="process",
    calibrated_by="compile",
    asv={"off": "first_compile"},
)
