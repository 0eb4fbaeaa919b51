"""All scenarios, and what is asked of them by name."""

from __future__ import annotations

from harness.declare.axes import known_names
from harness.errors import find_name
from harness.stages import registry as stages
from harness.stages.scenarios import cold, default, executable, exported, off, warm
from harness.stages.scenarios.scenario import Scenario
from harness.targets.target import Target

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        off.SCENARIO,
        cold.SCENARIO,
        warm.SCENARIO,
        default.SCENARIO,
        exported.SCENARIO,
        executable.SCENARIO,
    )
}

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
