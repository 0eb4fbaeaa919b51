"""`default`."""

from harness.stages.scenarios.scenario import HIT, REQUEST, WRITTEN, Scenario

SCENARIO = Scenario(
    name="default",
    description="as warm, with JAX's own thresholds: only what compiled for 1 s or more is written",
    steps=("build", "compile", "load"),
    directory="filled",
    filled_in="default",
    outcomes=(("load", HIT), ("compile", WRITTEN), ("compile", REQUEST)),
    missing={
        "load": "nothing to load: it compiled faster than JAX's threshold of 1 s and was not "
        "written",
        "compile": "nothing to compile: every request was answered by the cache",
    },
)
