"""All scenarios, and what is asked of them by name."""

from __future__ import annotations

from harness.errors import find_name
from harness.stages import registry as stages
from harness.stages.scenarios import executable, exported
from harness.stages.scenarios.scenario import HIT, REQUEST, WRITE_ALL, WRITTEN, Scenario
from harness.targets.target import Target
from harness.workload.axes import known_names

_ROWS = (
    Scenario(
        name="off",
        description="no persistent cache: what every other number of the harness is taken in",
        steps=("build", "compile", "run", "compute"),
        first_calls=0,  # most of its numbers need none, and a process each is dear
        directory="none",
    ),
    Scenario(
        name="cold",
        description="a fresh process and an empty directory; everything is written, whatever it "
        "cost",
        steps=("build", "compile"),
        directory="empty",
        settings=WRITE_ALL,
        outcomes=(("compile", WRITTEN),),
    ),
    Scenario(
        name="warm",
        description="a fresh process and a directory that another process has filled",
        steps=("build", "load"),
        directory="filled",
        filled_in="cold",
        settings=WRITE_ALL,
        outcomes=(("load", HIT),),
    ),
    Scenario(
        name="default",
        description="as warm, with JAX's own thresholds: only what compiled for 1 s or more is "
        "written",
        steps=("build", "compile", "load"),
        directory="filled",
        filled_in="default",
        outcomes=(("load", HIT), ("compile", WRITTEN), ("compile", REQUEST)),
        missing={
            "load": "nothing to load: it compiled faster than JAX's threshold of 1 s and was not "
            "written",
            "compile": "nothing to compile: every request was answered by the cache",
        },
    ),
    exported.SCENARIO,
    executable.SCENARIO,
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ROWS}

known_names["scenarios"] = SCENARIOS


def find(name: str) -> Scenario:
    """Return the scenario of that name.

    Raises:
        UsageError: there is none; the known ones are named.
    """
    return SCENARIOS[find_name(name, SCENARIOS, "scenario")]


def stages_of(name: str) -> tuple[str, ...]:
    """Return the names of the stages of a visit to a case in a scenario, in order."""
    return stages.names(*SCENARIOS[name].steps)


def inapplicable(name: str, target: Target) -> str | None:
    """Return why a target cannot be measured in a scenario, or None if it can."""
    scenario = SCENARIOS[name]
    if scenario.directory == "none" or not target.compile_only:
        return None
    if scenario.artefact:
        return f"{target.name} is compiled for without a device, and only a device can load for it"
    # Reading it, jax 0.10 to 0.12 say: "PjRtCompiler must be constructed with a Client".
    return (
        f"{target.name} is compiled for without a device, and what JAX's persistent cache then "
        "writes it cannot read back: only the scenario 'off' can be measured"
    )
