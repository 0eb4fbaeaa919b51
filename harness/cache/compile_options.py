"""What differs between two sets of compile options, field by field and in people's words."""

from __future__ import annotations

import json
from dataclasses import dataclass

MOST_CHARACTERS = 60
"""A longer value is left to the lines."""

WORDS = {
    "allow_spmd_sharding_propagation_to_parameters": "XLA may not choose an argument's sharding "
    "any more, or may again",
    "allow_spmd_sharding_propagation_to_output": "XLA may not choose a result's sharding any more, "
    "or may again",
    "device_assignment": "the devices that it runs on",
    "num_partitions": "the number of partitions",
    "num_replicas": "the number of replicas",
    "use_shardy_partitioner": "which partitioner is used, Shardy or GSPMD",
    "use_spmd_partitioning": "whether it is partitioned",
    "exec_time_optimization_effort": "the effort for a short run",
    "memory_fitting_effort": "the effort to fit into memory",
    "optimization_level": "the level of optimization",
    "xla_backend_optimization_level": "the level of optimization",
    "env_option_overrides": "the compiler options of jax.jit",
}
"""Fields whose names a user does not know; others are called by their own."""


@dataclass(frozen=True)
class OptionChange:
    """One field that differs.

    Attributes:
        field: XLA's name of it, without where it lies.
        cause: What it means, with both values where they are short; empty for what only follows.
    """

    field: str
    cause: str
    line: str


def changes(a: str, b: str) -> tuple[OptionChange, ...]:
    """Return the fields that differ between what two ledgers keep of their compile options."""
    old, new = json.loads(a), json.loads(b)
    return tuple(
        _change(name, old.get(name, "(not set)"), new.get(name, "(not set)"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def _change(name: str, old: str, new: str) -> OptionChange:
    field = name.rpartition(".")[2]
    cause = WORDS.get(field, field)
    if "may not" in cause:  # a value for each argument: their number says nothing of its own
        cause = cause if old.count(",") == new.count(",") else ""
    elif max(len(old), len(new)) <= MOST_CHARACTERS:
        cause = f"{cause}, {old} became {new}"
    return OptionChange(field, cause, f"{name}: {old} -> {new}")
