"""`off`."""

from harness.stages.scenarios.scenario import Scenario

SCENARIO = Scenario(
    name="off",
    description="no persistent cache: what every other number of the harness is taken in",
    steps=("build", "compile", "run", "compute"),
    first_calls=0,  # most of its numbers need none, and a process each is dear
    directory="none",
)
