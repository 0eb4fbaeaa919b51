"""`start`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Read when the first call had its result: one span of time, with the same proof."""
    if "first_call" in run.refused:
        run.refuse("start", run.refused["first_call"])
    else:
        run.keep("start", [run.called_ns - run.spawned_ns])


STAGE = Stage(
    name="start",
    title="From the start of the process until the first result is there.",
    step="start",
    colour="#B8A100",
    take=take,
    asv={"cold": "start_cold", "warm": "start_warm"},
)
