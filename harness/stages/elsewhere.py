"""Stages that no pass over a case takes: of the process, of the reference, of a comparison."""

from harness.stages.stage import Stage

PROCESS = (
    Stage(
        name="import",
        title="What `import jax` takes.",
        step="process",
        asv={"off": "import"},
    ),
    Stage(
        name="backend",
        title="Waking JAX's back end.",
        step="process",
        asv={"off": "backend"},
    ),
    Stage(
        name="first_lower",
        title="Lowering a trivial program, the first of the process.",
        step="process",
        calibrated_by="lower",
        asv={"off": "first_lower"},
    ),
    Stage(
        name="first_compile",
        title="Compiling a trivial program, the first of the process.",
        step="process",
        calibrated_by="compile",
        asv={"off": "first_compile"},
    ),
    Stage(
        name="ready",
        title="From the start of the process until it can measure.",
        step="process",
        asv={"off": "ready"},
    ),
)

OTHERS = (
    Stage(
        name="loop",
        title="The plain Python loop that every process measures.",
        step="reference",
        statistic=min,
    ),
    Stage(
        name="latency",
        title="One call of a side of a comparison, until its result is there.",
        step="comparison",
        statistic=min,
    ),
    Stage(
        name="slope",
        title="What one more call costs among many.",
        step="comparison",
    ),
)
