"""`first_call`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass

SEEN = "this process had traced {} before: that was no first call"


def take(run: Pass) -> None:
    """Call the function as a user's program does, which has never seen it; the collector is on."""
    before = {name for _, name in run.proof.traced}
    count = len(run.proof.traced)
    spent_ns, seen = run.clocked("first_call", run.first_call(), collector=True)
    built = run.scenario.outcomes or (("compile", {"compile": 1}),)
    outcomes = [("first_call", {**STAGE.events, **proof}) for _, proof in built]
    run.judge_as_one_of(outcomes, spent_ns, seen)
    # What is traced inside of a function takes less than the function.
    _, name = max(run.proof.traced[count:], default=(0.0, ""))
    if name in before:
        run.refuse("first_call", SEEN.format(name))


STAGE = Stage(
    name="first_call",
    title="The first call of a jitted function in its process, until its result is there.",
    step="first_call",
    take=take,
    events={"trace": 1, "lower": 1},
    asv={"cold": "first_call_cold", "warm": "first_call_warm"},
)
