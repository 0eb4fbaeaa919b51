"""`start`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import LOOP, Stage, median

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Add the first call to what the process took until it could begin: the same proof."""
    for first_ns in run.samples_ns.get("first_call", ()):
        run.keep("start", [run.ready_ns + first_ns])
    if "first_call" in run.refused:
        run.refuse("start", run.refused["first_call"])


STAGE = Stage(
    name="start",
    title="From the start of the process until the first result is there.",
    order=130,
    step="first_call",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.1,
    colour="#B8A100",
    take=take,
    asv={"cold": "start_cold", "warm": "start_warm"},
)
