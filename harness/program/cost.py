"""What XLA's own analyses say of a compiled program: its work, and its memory."""

from __future__ import annotations

from typing import Any

from harness.watch import jax_names

_COST = {
    "flops": "flops",
    "transcendentals": "transcendentals",
    "bytes_accessed": "bytes accessed",
}

_MEMORY = {
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "temporary_bytes": "temp_size_in_bytes",
    "aliased_bytes": "alias_size_in_bytes",
    "peak_bytes": "peak_memory_in_bytes",
    "code_bytes": "generated_code_size_in_bytes",
}


def cost(compiled: Any, modules: list[Any]) -> dict[str, float]:
    """Return flops, transcendentals and bytes accessed of a `jax.stages.Compiled`.

    Empty where neither the back end nor XLA's analysis of `modules` (JAX's HLO objects) answers,
    as the compile-only GPU does not by itself. A property that XLA leaves out of its answer is 0;
    one that it gives as negative is unknown to it, and left out here.
    """
    found = compiled.cost_analysis()
    if isinstance(found, (list, tuple)):  # one dictionary for each module
        found = found[0] if len(found) == 1 else None
    if found is None:
        found = _of_modules(modules)
    if found is None:
        return {}
    values = {name: float(found.get(key, 0.0)) for name, key in _COST.items()}
    return {name: value for name, value in values.items() if value >= 0}


def _of_modules(modules: list[Any]) -> Any:
    """Ask XLA's analysis, which any client answers alike; there need be no CPU client."""
    if len(modules) != 1:
        return None
    return jax_names.cost_analysis(modules[0])


def memory(compiled: Any) -> dict[str, int]:
    """Return the bytes that arguments, outputs, temporaries and code of a program take.

    Per device, padding included. Empty where the back end does not say.
    """
    found = compiled.memory_analysis()
    if found is None:
        return {}
    values = {name: getattr(found, key, None) for name, key in _MEMORY.items()}
    return {name: int(value) for name, value in values.items() if value is not None}
