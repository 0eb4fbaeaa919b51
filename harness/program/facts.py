"""The facts of a program: what JAX and XLA built, in numbers that no noise disturbs.

Known without importing JAX, because records and frames hold them; :mod:`harness.program.reading`
takes them.
"""

from __future__ import annotations

import msgspec

from harness.declare.check import RESERVED_AXES


class Facts(msgspec.Struct, omit_defaults=True):
    """What was built for one case. None means that JAX or the back end does not say."""

    jaxpr_equations: int | None = None
    """Equations of the jaxpr and of those nested in it. A jaxpr that several equations share counts
    once, as does the body of a loop."""
    stablehlo_operations: int | None = None
    """Operations of the StableHLO module, without those that only hold it together."""
    stablehlo_bytes: int | None = None
    """Length of the module's text without locations."""
    hlo_instructions: int | None = None
    """Instructions of the optimised HLO in all computations, those inside fusions included."""
    fusions: int | None = None
    custom_calls: int | None = None
    while_loops: int | None = None
    collectives: int | None = None
    launches: int | None = None
    """Units of work that one run sets going: instructions of the entry computation that are not
    free, bodies of loops times their trips. :func:`harness.program.launches.launches` says what
    is free, and what a unit is on CPU, GPU and TPU."""
    flops: float | None = None
    """Of XLA's cost analysis, which counts the body of a loop once."""
    transcendentals: float | None = None
    """Of XLA's cost analysis, which counts the body of a loop once."""
    bytes_accessed: float | None = None
    """Of XLA's cost analysis, which counts the body of a loop once, and overlapping reads twice."""
    argument_bytes: int | None = None
    output_bytes: int | None = None
    temporary_bytes: int | None = None
    aliased_bytes: int | None = None
    """Output bytes that live in donated arguments."""
    peak_bytes: int | None = None
    """Of XLA's memory analysis: arguments and outputs included, and on CPU little else."""
    code_bytes: int | None = None
    """0 where the back end does not count its code, as on CPU."""
    stablehlo_kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """Operation to count."""
    fusion_kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """`loop`, `input`, `output`, `custom` to count."""
    custom_call_targets: dict[str, int] = msgspec.field(default_factory=dict)
    collective_kinds: dict[str, int] = msgspec.field(default_factory=dict)
    loop_trips: list[int | None] = msgspec.field(default_factory=list)
    """Trip count of each while loop, the largest first, and None where XLA does not write it, as on
    TPU: `launches` then counts its body once."""


TOTALS = tuple(
    name for name in Facts.__struct_fields__ if not name.endswith(("_kinds", "_targets", "_trips"))
)
"""The facts that are one number each, in the order of the stages they are read off."""


def unit(fact: str) -> str:
    """Return the unit of one of :data:`TOTALS`."""
    if fact.endswith("_bytes") or fact == "bytes_accessed":
        return "bytes"
    return "flops" if fact == "flops" else "count"


RESERVED_AXES.update(TOTALS)
