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
    from harness.analysis.against import against_baseline as against_baseline
    from harness.analysis.effectiveness import cache_effectiveness as cache_effectiveness
    from harness.analysis.history import history as history
    from harness.analysis.load import load as load
    from harness.analysis.phases import phases as phases
    from harness.analysis.program_facts import program_facts as program_facts
    from harness.analysis.recompile_map import recompile_map as recompile_map
    from harness.analysis.releases import releases as releases
    from harness.analysis.scaling import scaling as scaling
    from harness.analysis.static_costs import static_costs as static_costs
    from harness.analysis.verdicts.compare import compare as compare
    from harness.notebook import sweep as sweep
    from harness.profiling.budgets.guard import BudgetExceeded as BudgetExceeded
    from harness.profiling.budgets.making import budget as budget
    from harness.profiling.model import read as load_profile  # noqa: F401
    from harness.profiling.profile import profile as profile
    from harness.workload import Spec as Spec
    from harness.workload import Workload as Workload
    from harness.workload import WorkloadError as WorkloadError
    from harness.workload import spec as spec

_HOMES = {
    "BudgetExceeded": "harness.profiling.budgets.guard",
    "Spec": "harness.workload",
    "Workload": "harness.workload",
    "WorkloadError": "harness.workload",
    "against_baseline": "harness.analysis.against",
    "budget": "harness.profiling.budgets.making",
    "compare": "harness.analysis.verdicts.compare",
    "history": "harness.analysis.history",
    "cache_effectiveness": "harness.analysis.effectiveness",
    "load": "harness.analysis.load",
    "load_profile": "harness.profiling.model",
    "phases": "harness.analysis.phases",
    "profile": "harness.profiling.profile",
    "program_facts": "harness.analysis.program_facts",
    "recompile_map": "harness.analysis.recompile_map",
    "releases": "harness.analysis.releases",
    "scaling": "harness.analysis.scaling",
    "spec": "harness.workload",
    "static_costs": "harness.analysis.static_costs",
    "sweep": "harness.notebook",
}

_OTHER_NAMES = {"load_profile": "read"}
"""Names that are shorter at home."""

__all__ = [
    *("Spec", "Workload", "WorkloadError", "__version__"),
    *("against_baseline", "cache_effectiveness", "compare", "history", "load"),
    *("BudgetExceeded", "budget", "load_profile", "phases", "profile"),
    *("program_facts", "recompile_map", "releases", "scaling", "spec", "static_costs", "sweep"),
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), _OTHER_NAMES.get(name, name))
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
