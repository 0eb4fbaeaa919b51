"""What XLA's own analyses say of a compiled program: its work, and its memory per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.jaxhooks import jax_names
from harness.program.fact import Fact, Unit


def analysis(compiled: Any, custom_calls: Sequence[str] = (), hidden: int = 0) -> Any:
    """Return XLA's analysis of the costs of a `jax.stages.Compiled`, a dictionary.

    None where neither the back end nor XLA's analysis of the optimised module answers, as the
    compile-only GPU does not by itself. What XLA counts for the `custom_calls`, by their targets,
    without knowing anything of them is taken off; what calls that are `hidden` from it do is none.
    """
    reported = compiled.cost_analysis()
    if isinstance(reported, (list, tuple)):  # one dictionary for each module
        reported = reported[0] if len(reported) == 1 else None
    platform, modules = "", []
    try:
        if reported is None:
            modules = list(compiled.runtime_executable().hlo_modules())
        else:
            placed = jax_names.public().tree.leaves(
                (compiled.output_shardings, compiled.input_shardings)
            )
            platform = next(iter(placed[0].device_set)).platform
    except (AttributeError, IndexError, NotImplementedError, RuntimeError):
        platform = "unknown"  # a back end need not keep them
    if len(modules) == 1:  # There need be no CPU client for it.
        reported = jax_names.cost_analysis(modules[0])
    if reported is None:
        return None
    costs = {**reported, _CALLS: hidden}
    if platform in _NOT_MINUS_ONE:
        unknown = sum(one not in _NOT_MINUS_ONE[platform] for one in custom_calls)
        costs |= {of: costs[of] + unknown for of in _MINUS_ONE if of in costs}
    return costs


_CALLS = "hidden calls"
_BYTES = "bytes accessed"
_MINUS_ONE = ("flops", _BYTES)
"""What XLA's analysis counts -1 of for each custom call (jaxlib 0.10 to 0.12)."""

_NOT_MINUS_ONE = {
    "": (),
    "cpu": (),
    "tpu": ("tpu_custom_call", "AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked"),
}
"""The targets of those for which it does not, by the platform whose analysis it is; "": XLA's."""


def _cost(name: str, unit: Unit, noun: str, meaning: str, of: str, rank: int = 0) -> Fact:
    def read(costs: Any) -> float | None:
        # What XLA leaves out of its answer is 0, but for what may be in a custom call, and where it
        # leaves out the bytes: no program moves none.
        value = float(costs.get(of, 0.0)) if _BYTES in costs else 0.0
        counted = _BYTES in costs and not costs.get(_CALLS)
        return value if value > 0 or (value == 0 and counted) else None

    about: dict[str, Any] = {"noun": noun, "meaning": meaning, "rank": rank, "column": bool(rank)}
    return Fact(name=name, source="cost", unit=unit, read=read, large=True, **about)


def _memory(name: str, noun: str, meaning: str, *of: str, **more: Any) -> Fact:
    def read(sizes: Any) -> int | None:
        values = [getattr(sizes, each) for each in of if hasattr(sizes, each)]
        return sum(map(int, values)) if len(values) == len(of) else None

    about = {"noun": noun, "meaning": meaning, **more}
    return Fact(name=name, source="memory", unit="bytes", read=read, **about)


_ONCE = "the body of a loop once, custom calls not at all"
_COUNTED = f"floating-point operations; {_ONCE}, a complex product as a real one"
_SPECIAL = f"exp, log, tanh and the like; {_ONCE}"
_MOVED = f"bytes read and written by all instructions; {_ONCE}"

COSTS = (
    _cost("flops", "flops", "flop", _COUNTED, "flops", rank=4),
    _cost("transcendentals", "count", "transcendental", _SPECIAL, "transcendentals"),
    _cost("bytes_accessed", "bytes", "accessed", _MOVED, "bytes accessed", rank=5),
)

_HELD = "memory held only while it runs, without what library code allocates itself"
_IN_INPUTS = "result memory that lives in donated inputs"
_AT_ONCE = "most memory at once, inputs and results included, those on the host too"
_CODE = "size of the machine code; 0 where the back end does not count it"

MEMORY = (
    _memory(
        "argument_bytes",
        "arguments",
        "memory of the inputs on the device",
        "argument_size_in_bytes",
    ),
    _memory(
        "output_bytes", "outputs", "memory of the results on the device", "output_size_in_bytes"
    ),
    _memory("temporary_bytes", "temporary", _HELD, "temp_size_in_bytes", rank=6, column=True),
    # Of less, asv would call a donation that works a regression.
    _memory("aliased_bytes", "aliased", _IN_INPUTS, "alias_size_in_bytes", better="more"),
    _memory(
        "host_bytes",
        "on the host",
        "memory of the host: inputs, results and temporaries that a program keeps there",
        "host_argument_size_in_bytes",
        "host_output_size_in_bytes",
        "host_temp_size_in_bytes",
    ),
    _memory("peak_bytes", "peak", _AT_ONCE, "peak_memory_in_bytes"),
    _memory("code_bytes", "code", _CODE, "generated_code_size_in_bytes"),
)
