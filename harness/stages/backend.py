"""`backend`."""

from harness.stages.stage import Stage

STAGE = Stage(
    name="backend",
    title="Waking JAX's back end.",
    step="process",
    asv={"off": "backend"},
)
