"""`first_call`."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from harness.stages.stage import Stage
from harness.watch import evidence

if TYPE_CHECKING:
    from harness.stages.passes import Pass

SEEN = "this process had traced a function named {} before: that may be no first call"


def take(run: Pass) -> None:
    """Call the function as a user's program does, which has never seen it; the collector is on.

    It has just run: whether all that the imports left is gone through once more in the middle of a
    short call would depend on how many objects were made before, by whomever.
    """
    before = {name for _, name in run.proof.traced}
    count = len(run.proof.traced)
    began_ns = time.monotonic_ns()
    gc.collect()
    run.spawned_ns += time.monotonic_ns() - began_ns  # a program that starts does not
    spent_ns, seen = run.clocked("first_call", run.first_call(), collector=True)
    answers = run.scenario.outcomes or (("compile", {"compile": 1}),)
    builds = "build" in run.scenario.steps
    outcomes = [
        ("first_call", {**(STAGE.events if builds else {}), **proof}) for _, proof in answers
    ]
    if builds and any(evidence.programs_within(seen, proof) for _, proof in outcomes):
        run.keep("first_call", [spent_ns])  # programs were built inside of it
    else:
        run.judge(outcomes, [spent_ns], seen)
    # What is traced inside of a function takes less than the function.
    _, name = max(run.proof.traced[count:], default=(0.0, ""))
    if name in before and run.scenario.artefact is None:
        run.refuse("first_call", SEEN.format(name))


STAGE = Stage(
    name="first_call",
    title="The first call of a jitted function in its process, until its result is there.",
    step="first_call",
    take=take,
    events={"trace": 1, "lower": 1},
    asv={"cold": "first_call_cold", "warm": "first_call_warm"},
)
