"""`execute`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.blocks import time_blocks
from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Time blocks of calls, each waited for."""
    run.repeated("execute", time_blocks, STAGE.events)


STAGE = Stage(
    name="execute",
    title="A call, until its result is there.",
    step="run",
    statistic=min,
    effect=0.15,
    colour="#0072B2",
    take=take,
    stacked=True,
    asv={"off": "execute"},
    power={"default": 0.2, "thorough": 0.1},
)
