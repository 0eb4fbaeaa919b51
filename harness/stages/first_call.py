"""`first_call`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage, median

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Call a new jitted function as a user does, with nothing in memory."""
    spent_ns, seen = run.clocked("first_call", run.first_call())
    outcomes = [("first_call", {**STAGE.events, **proof}) for _, proof in run.scenario.outcomes]
    run.judge_as_one_of(outcomes, spent_ns, seen)


STAGE = Stage(
    name="first_call",
    title="The first call of a jitted function, until its result is there.",
    order=120,
    step="first_call",
    statistic=median,
    calibrated_by="compile",
    effect=0.1,
    colour="#999999",
    take=take,
    events={"trace": 1, "lower": 1},
    asv={"cold": "first_call_cold", "warm": "first_call_warm"},
)
