"""`off`."""

from __future__ import annotations

from harness.stages.scenarios.scenario import Scenario

SCENARIO = Scenario(
    name="off",
    description="no persistent cache: what every other number of the harness is taken in",
    steps=("build", "compile", "run"),
    alone=("first_call",),
    first_calls=3,
    least_processes=3,  # fewer allow no verdict
    directory="none",
)
