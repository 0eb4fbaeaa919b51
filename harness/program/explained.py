"""The facts of a program for people: their names, their values, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.program.facts import TOTALS, Facts

UNKNOWN = "not said"
"""Shown for a fact that JAX or the back end does not give."""

MEANINGS = {
    "jaxpr_equations": "equations of the jaxpr, nested ones included",
    "stablehlo_operations": "operations that JAX handed to XLA",
    "stablehlo_bytes": "length of the StableHLO text without locations",
    "hlo_instructions": "instructions of the optimised HLO",
    "fusions": "groups of operations that XLA made one kernel",
    "custom_calls": "calls of library code, such as BLAS, LAPACK or cuDNN",
    "while_loops": "loops; after them, how often each runs where XLA knows",
    "collectives": "exchanges between devices",
    "launches": "what one call starts: entry instructions that do work, times the trips of loops",
    "flops": "floating-point operations; XLA counts the body of a loop once",
    "transcendentals": "exp, log, tanh and the like; the body of a loop once",
    "bytes_accessed": "bytes read and written by all instructions; the body of a loop once",
    "argument_bytes": "memory of the inputs",
    "output_bytes": "memory of the results",
    "temporary_bytes": "memory held only while it runs",
    "aliased_bytes": "result memory that lives in donated inputs",
    "peak_bytes": "most memory at once, inputs and results included",
    "code_bytes": "size of the machine code; 0 where the back end does not count it",
}
"""What each of :data:`harness.program.facts.TOTALS` means, in a few words."""

_DETAILS = {
    "fusions": "fusion_kinds",
    "custom_calls": "custom_call_targets",
    "collectives": "collective_kinds",
    "stablehlo_operations": "stablehlo_kinds",
}
_MOST = 4
"""So many kinds are named, the most frequent first."""


def rows(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Yield each fact's name, its value as text, and what it means."""
    for name in TOTALS:
        value = getattr(facts, name)
        text = UNKNOWN if value is None else f"{value:,.0f}"
        if value and name in _DETAILS:
            text += _kinds(getattr(facts, _DETAILS[name]))
        if value and name == "while_loops" and facts.loop_trips:
            trips = ["?" if trip is None else f"{trip:,}" for trip in facts.loop_trips]
            text += f" ({', '.join(trips[:_MOST])}{', ...' if len(trips) > _MOST else ''} trips)"
        yield name, text, MEANINGS[name]


def _kinds(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {kind.removeprefix('stablehlo.')}" for kind, count in ordered[:_MOST]]
    return f" ({', '.join(named)}{', ...' if len(ordered) > _MOST else ''})"
