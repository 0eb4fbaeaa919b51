"""`first_lower`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="first_lower",
    title="Lowering a trivial program, the first of the process.",
    step="process",
    calibrated_by="lower",
    asv={"off": "first_lower"},
)
