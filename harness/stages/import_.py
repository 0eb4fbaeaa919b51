"""`import`."""

from __future__ import annotations

from harness.stages.stage import Stage

STAGE = Stage(
    name="import",
    title="What `import jax` takes.",
    step="process",
    asv={"off": "import"},
)
