"""Benchmarking and compile-cache profiling for JAX.

Declare a :class:`Workload`; measure how long it takes to trace, lower, compile and execute, in
isolated processes; read the results as a pandas frame::

    import harness

    frame = harness.sweep(MyWorkload, effort="quick")   # measure here and now
    frame = harness.load("results", all=True)           # or read what was measured before
    harness.compare(frame, "jax=0.11.2", "jax=0.12.0.1")  # what became slower?

Importing this package loads neither JAX nor pandas: every name below is resolved on first use.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    alias.asname or alias.name: (node.module, alias.name)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
"""The module of each name, and what it is called there, as the stub for type checkers says."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    home, own = _HOMES[name]
    value = getattr(importlib.import_module(home), own)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
