"""`cold`."""

from harness.stages.scenarios.scenario import WRITE_ALL, WRITTEN, Scenario

SCENARIO = Scenario(
    name="cold",
    description="a fresh process and an empty directory; everything is written, whatever it cost",
    steps=("build", "compile"),
    directory="empty",
    settings=WRITE_ALL,
    outcomes=(("compile", WRITTEN),),
)
