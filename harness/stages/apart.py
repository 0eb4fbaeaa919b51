"""What no pass over a case takes: of a process itself, of the reference, of a comparison."""

from __future__ import annotations

from typing import Any

from harness.stages.stage import LOOP, Stage, Step, median


def _stage(name: str, step: Step, title: str, order: int, **others: Any) -> Stage:
    grey = "#999999"
    told = {"statistic": median, "calibrated_by": LOOP, "effect": 0.1, "colour": grey, **others}
    return Stage(name=name, step=step, title=title, order=order, **told)


def _once(name: str, title: str, order: int, calibrated_by: str = LOOP) -> Stage:
    """Return what a process pays once."""
    return _stage(name, "process", title, order, calibrated_by=calibrated_by, asv={"off": name})


STAGES = (
    _once("import", "What `import jax` takes.", 10),
    _once("backend", "Waking JAX's back end.", 20),
    _once("first_lower", "Lowering a trivial program, the first of the process.", 30, "lower"),
    _once("first_compile", "Compiling a trivial program, the first of the process.", 40, "compile"),
    _once("ready", "From the start of the process until it can measure.", 50),
    _stage(
        "loop",
        "reference",
        "The plain Python loop that every process measures.",
        140,
        statistic=min,
    ),
    _stage(
        "latency",
        "comparison",
        "One call of a side of a comparison, until its result is there.",
        150,
        statistic=min,
    ),
    _stage("slope", "comparison", "What one more call costs among many.", 160),
)
