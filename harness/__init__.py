"""Benchmarking and compile-cache profiling for JAX.

Declare a :class:`Workload`; measure how long it takes to trace, lower, compile and execute, in
isolated processes; read the results as a pandas frame::

    import harness

    frame = harness.sweep(MyWorkload, effort="quick")   # measure here and now
    frame = harness.load("results")                     # or read what was measured before

Importing this package loads neither JAX nor pandas: every name below is resolved on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from harness.analysis.against import against_baseline as against_baseline
    from harness.analysis.load import load as load
    from harness.analysis.program_facts import program_facts as program_facts
    from harness.notebook import sweep as sweep
    from harness.workload import Spec as Spec
    from harness.workload import Workload as Workload
    from harness.workload import WorkloadError as WorkloadError
    from harness.workload import spec as spec

_HOMES = {
    "Spec": "harness.workload",
    "Workload": "harness.workload",
    "WorkloadError": "harness.workload",
    "against_baseline": "harness.analysis.against",
    "load": "harness.analysis.load",
    "program_facts": "harness.analysis.program_facts",
    "spec": "harness.workload",
    "sweep": "harness.notebook",
}

__all__ = [
    *("Spec", "Workload", "WorkloadError", "__version__"),
    *("against_baseline", "load", "program_facts", "spec", "sweep"),
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
