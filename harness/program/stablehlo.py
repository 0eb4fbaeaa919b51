"""Count the operations of the StableHLO that JAX hands to XLA."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.program.fact import Fact

STRUCTURE = frozenset({"builtin.module", "func.func", "func.return", "sdy.mesh"})
"""Operations that only hold a module together. So do the terminators of nested regions, which are
called `return` in every dialect."""


def kinds(lowered: Any) -> dict[str, int] | None:
    """Return how often each operation occurs in the module, by its full name, sorted.

    Operations inside the regions of others (loops, reductions) count, once each. `lowered` is a
    `jax.stages.Lowered`; None where it has no MLIR module.
    """
    module = lowered.compiler_ir()
    if module is None:
        return None
    counts: Counter[str] = Counter()
    waiting = [module.operation]
    while waiting:
        for region in waiting.pop().regions:
            for block in region:
                inner = [one.operation for one in block.operations]
                counts.update(one.name for one in inner)
                waiting += [one for one in inner if len(one.regions)]
    return {
        name: count
        for name, count in sorted(counts.items())
        if name not in STRUCTURE and not name.endswith(".return")
    }


def size_bytes(lowered: Any) -> int | None:
    """Return the length in bytes of the module's text without locations, None if it has none."""
    text = lowered.as_text()
    return len(text.encode()) if text else None


OPERATIONS = Fact(
    name="stablehlo_operations",
    source="stablehlo",
    meaning="operations that JAX handed to XLA",
    noun="StableHLO operation",
    read=kinds,
    parts="stablehlo_kinds",
    summed_up=True,
)

BYTES = Fact(
    name="stablehlo_bytes",
    source="stablehlo",
    unit="bytes",
    meaning="length of the StableHLO text without locations",
    noun="StableHLO text",
    read=size_bytes,
)
