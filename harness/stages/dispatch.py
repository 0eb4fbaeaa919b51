"""`dispatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.blocks import time_returns
from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Time calls one by one, until they return."""
    run.repeated("dispatch", time_returns, STAGE.events)


STAGE = Stage(
    name="dispatch",
    title="A call, until it returns.",
    step="run",
    statistic=min,
    effect=0.25,
    colour="#CC79A7",
    take=take,
    asv={"off": "dispatch"},
)
