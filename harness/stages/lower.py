"""`lower`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass


def take(run: Pass) -> None:
    """Lower; what has no trace step of its own is traced in it."""
    traced = {} if run.build.has_trace else {"trace": 1}
    run.timed("lower", run.build.lower, {**traced, **STAGE.events})


STAGE = Stage(
    name="lower",
    title="The jaxpr becomes StableHLO.",
    step="build",
    calibrated_by="lower",
    effect=0.15,
    colour="#E69F00",
    take=take,
    events={"lower": 1},
    stacked=True,
    asv={"off": "lower"},
    power={"default": 0.2},
    counted="lower_calls",
    clock="cpu",
)
