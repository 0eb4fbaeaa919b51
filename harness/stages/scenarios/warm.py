"""`warm`."""

from harness.stages.scenarios.scenario import HIT, WRITE_ALL, Scenario

SCENARIO = Scenario(
    name="warm",
    description="a fresh process and a directory that another process has filled",
    steps=("build", "load"),
    directory="filled",
    filled_in="cold",
    settings=WRITE_ALL,
    outcomes=(("load", HIT),),
)
