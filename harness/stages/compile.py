"""`compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage, median

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Ask for the program, once; which stage that was, the events tell where there is a cache."""
    if run.build.compiled is not None:
        return
    spent_ns, seen = run.clocked("compile", run.build.compile)
    outcomes = run.scenario.outcomes or (("compile", STAGE.events),)
    run.judge_as_one_of(outcomes, spent_ns, seen)
    run.refuse_if_misplaced()


STAGE = Stage(
    name="compile",
    title="XLA makes a program of it.",
    order=80,
    step="compile",
    statistic=median,
    calibrated_by="compile",
    effect=0.05,
    colour="#D55E00",
    take=take,
    events={"compile": 1},
    stacked=True,
    asv={"off": "compile"},
    power={"default": 0.2, "thorough": 0.1},
)
