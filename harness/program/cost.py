"""What XLA's own analyses say of a compiled program: its work, and its memory per device."""

from __future__ import annotations

import functools
from typing import Any

from harness.program.fact import Fact
from harness.watch import jax_names


def analysis(compiled: Any, modules: list[Any]) -> Any:
    """Return XLA's analysis of the costs of a `jax.stages.Compiled`, a dictionary.

    None where neither the back end nor XLA's analysis of `modules` (JAX's HLO objects) answers,
    as the compile-only GPU does not by itself.
    """
    found = compiled.cost_analysis()
    if isinstance(found, (list, tuple)):  # one dictionary for each module
        found = found[0] if len(found) == 1 else None
    if found is None and len(modules) == 1:  # there need be no CPU client for it
        found = jax_names.cost_analysis(modules[0])
    return found


def _cost(of: str, costs: Any) -> float | None:
    """Return a cost. What XLA leaves out of its answer is 0; what is negative, it does not know."""
    value = float(costs.get(of, 0.0))
    return value if value >= 0 else None


def _memory(of: str, sizes: Any) -> int | None:
    value = getattr(sizes, of, None)
    return None if value is None else int(value)


_cost_fact = functools.partial(Fact, source="cost", better="less")
_memory_fact = functools.partial(Fact, source="memory", unit="bytes", better="less")

COSTS = (
    _cost_fact(
        name="flops",
        unit="flops",
        meaning="floating-point operations; XLA counts the body of a loop once",
        noun="flop",
        read=functools.partial(_cost, "flops"),
        large=True,
        rank=4,
        column=True,
    ),
    _cost_fact(
        name="transcendentals",
        unit="count",
        meaning="exp, log, tanh and the like; the body of a loop once",
        noun="transcendental",
        read=functools.partial(_cost, "transcendentals"),
        large=True,
    ),
    _cost_fact(
        name="bytes_accessed",
        unit="bytes",
        meaning="bytes read and written by all instructions; the body of a loop once",
        noun="accessed",
        read=functools.partial(_cost, "bytes accessed"),
        rank=5,
        column=True,
    ),
)

MEMORY = (
    _memory_fact(
        name="argument_bytes",
        meaning="memory of the inputs",
        noun="arguments",
        read=functools.partial(_memory, "argument_size_in_bytes"),
    ),
    _memory_fact(
        name="output_bytes",
        meaning="memory of the results",
        noun="outputs",
        read=functools.partial(_memory, "output_size_in_bytes"),
    ),
    _memory_fact(
        name="temporary_bytes",
        meaning="memory held only while it runs",
        noun="temporary",
        read=functools.partial(_memory, "temp_size_in_bytes"),
        rank=6,
        column=True,
    ),
    _memory_fact(
        name="aliased_bytes",
        better="more",  # asv would call a donation that works a regression
        meaning="result memory that lives in donated inputs",
        noun="aliased",
        read=functools.partial(_memory, "alias_size_in_bytes"),
    ),
    _memory_fact(
        name="peak_bytes",
        meaning="most memory at once, inputs and results included",
        noun="peak",
        read=functools.partial(_memory, "peak_memory_in_bytes"),
    ),
    _memory_fact(
        name="code_bytes",
        meaning="size of the machine code; 0 where the back end does not count it",
        noun="code",
        read=functools.partial(_memory, "generated_code_size_in_bytes"),
    ),
)
