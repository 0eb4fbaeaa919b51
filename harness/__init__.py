"""Benchmarking and compile-cache profiling for JAX.

Declare a :class:`Workload`; measure how long it takes to trace, lower, compile and execute, in
isolated processes; read the results as a pandas frame::

    import harness

    frame = harness.sweep(MyWorkload, effort="quick")   # measure here and now
    frame = harness.load("results")                     # or read what was measured before
    harness.compare(frame, "jax=0.11.2", "jax=0.12.0.1")  # what became slower?

Importing this package loads neither JAX nor pandas: every name below is resolved on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from harness.declare.workload import Spec as Spec
    from harness.declare.workload import Workload as Workload
    from harness.declare.workload import WorkloadError as WorkloadError
    from harness.declare.workload import spec as spec
    from harness.frame.against import against_baseline as against_baseline
    from harness.frame.effectiveness import cache_effectiveness as cache_effectiveness
    from harness.frame.load import load as load
    from harness.frame.notebook import sweep as sweep
    from harness.frame.phases import phases as phases
    from harness.frame.program_facts import program_facts as program_facts
    from harness.frame.recompile_map import recompile_map as recompile_map
    from harness.frame.scaling import scaling as scaling
    from harness.frame.static_costs import static_costs as static_costs
    from harness.profiles.budgets.budget import BudgetExceeded as BudgetExceeded
    from harness.profiles.budgets.budget import budget as budget
    from harness.report.profile.face import load_profile as load_profile
    from harness.report.profile.face import profile as profile
    from harness.verdicts.compare import compare as compare
    from harness.verdicts.history import history as history
    from harness.verdicts.releases import releases as releases

_HOMES = {
    "BudgetExceeded": "harness.profiles.budgets.budget",
    "Spec": "harness.declare.workload",
    "Workload": "harness.declare.workload",
    "WorkloadError": "harness.declare.workload",
    "against_baseline": "harness.frame.against",
    "budget": "harness.profiles.budgets.budget",
    "compare": "harness.verdicts.compare",
    "history": "harness.verdicts.history",
    "cache_effectiveness": "harness.frame.effectiveness",
    "load": "harness.frame.load",
    "load_profile": "harness.report.profile.face",
    "phases": "harness.frame.phases",
    "profile": "harness.report.profile.face",
    "program_facts": "harness.frame.program_facts",
    "recompile_map": "harness.frame.recompile_map",
    "releases": "harness.verdicts.releases",
    "scaling": "harness.frame.scaling",
    "spec": "harness.declare.workload",
    "static_costs": "harness.frame.static_costs",
    "sweep": "harness.frame.notebook",
}

__all__ = [
    *("Spec", "Workload", "WorkloadError", "__version__"),
    *("against_baseline", "cache_effectiveness", "compare", "history", "load"),
    *("BudgetExceeded", "budget", "load_profile", "phases", "profile"),
    *("program_facts", "recompile_map", "releases", "scaling", "spec", "static_costs", "sweep"),
]


def __getattr__(name: str) -> Any:
    if name == "suite":  # `from harness import suite` stands in benchmarks that 0.1 set up
        return importlib.import_module("harness.asv.suite")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
