"""Read the facts off a program that JAX has built."""

from __future__ import annotations

from typing import Any

from harness.program import cost, hlo, hlo_counts, jaxpr, stablehlo
from harness.program.facts import Facts


def read(traced: Any, lowered: Any, compiled: Any) -> Facts:
    """Return the facts of a program.

    `traced`, `lowered` and `compiled` are the objects of `jax.stages`; each may be None, and its
    facts are then None (or empty) as well. The same program gives equal facts in every process.
    """
    found: dict[str, Any] = {}
    if traced is not None:
        found["jaxpr_equations"] = jaxpr.equations(traced.jaxpr)
    if lowered is not None:
        kinds = stablehlo.kinds(lowered)
        if kinds is not None:
            found["stablehlo_kinds"] = kinds
            found["stablehlo_operations"] = sum(kinds.values())
        found["stablehlo_bytes"] = stablehlo.size_bytes(lowered)
    if compiled is not None:
        modules = hlo.modules(compiled)
        program = hlo.from_compiled(compiled, modules)
        if program is not None:
            found |= hlo_counts.counts(program)
        found |= cost.cost(compiled, modules)
        found |= cost.memory(compiled)
    return Facts(**found)
