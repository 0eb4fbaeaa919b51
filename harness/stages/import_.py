"""`import`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="import",
    title="What `import jax` takes.",
    step="process",
    asv={"off": "import"},
)
