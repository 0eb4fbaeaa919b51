"""What XLA's own analyses say of a compiled program: its work, and its memory per device."""

from __future__ import annotations

from typing import Any

from harness.program.fact import Fact, Unit
from harness.watch import jax_names


def analysis(compiled: Any) -> Any:
    """Return XLA's analysis of the costs of a `jax.stages.Compiled`, a dictionary.

    None where neither the back end nor XLA's analysis of the optimised module answers, as the
    compile-only GPU does not by itself.
    """
    found = compiled.cost_analysis()
    if isinstance(found, (list, tuple)):  # one dictionary for each module
        found = found[0] if len(found) == 1 else None
    if found is not None:
        return found
    try:
        modules = list(compiled.runtime_executable().hlo_modules())
    except (AttributeError, NotImplementedError, RuntimeError):  # a back end need not keep them
        return None
    # There need be no CPU client for it.
    return jax_names.cost_analysis(modules[0]) if len(modules) == 1 else None


def _cost(name: str, unit: Unit, noun: str, meaning: str, of: str, rank: int = 0) -> Fact:
    def read(costs: Any) -> float | None:
        # What XLA leaves out of its answer is 0; what is negative, it does not know.
        value = float(costs.get(of, 0.0))
        return value if value >= 0 else None

    about: dict[str, Any] = {"noun": noun, "meaning": meaning, "rank": rank, "column": bool(rank)}
    return Fact(name=name, source="cost", unit=unit, read=read, large=True, **about)


def _memory(name: str, noun: str, meaning: str, of: str, **more: Any) -> Fact:
    def read(sizes: Any) -> int | None:
        value = getattr(sizes, of, None)
        return None if value is None else int(value)

    about = {"noun": noun, "meaning": meaning, **more}
    return Fact(name=name, source="memory", unit="bytes", read=read, **about)


_COUNTED = "floating-point operations; XLA counts the body of a loop once"
_SPECIAL = "exp, log, tanh and the like; the body of a loop once"
_MOVED = "bytes read and written by all instructions; the body of a loop once"

COSTS = (
    _cost("flops", "flops", "flop", _COUNTED, "flops", rank=4),
    _cost("transcendentals", "count", "transcendental", _SPECIAL, "transcendentals"),
    _cost("bytes_accessed", "bytes", "accessed", _MOVED, "bytes accessed", rank=5),
)

_HELD = "memory held only while it runs"
_IN_INPUTS = "result memory that lives in donated inputs"
_AT_ONCE = "most memory at once, inputs and results included"
_CODE = "size of the machine code; 0 where the back end does not count it"

MEMORY = (
    _memory("argument_bytes", "arguments", "memory of the inputs", "argument_size_in_bytes"),
    _memory("output_bytes", "outputs", "memory of the results", "output_size_in_bytes"),
    _memory("temporary_bytes", "temporary", _HELD, "temp_size_in_bytes", rank=6, column=True),
    # Of less, asv would call a donation that works a regression.
    _memory("aliased_bytes", "aliased", _IN_INPUTS, "alias_size_in_bytes", better="more"),
    _memory("peak_bytes", "peak", _AT_ONCE, "peak_memory_in_bytes"),
    _memory("code_bytes", "code", _CODE, "generated_code_size_in_bytes"),
)
