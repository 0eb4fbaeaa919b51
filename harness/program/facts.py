"""The facts of a program: what JAX and XLA built, in numbers that no noise disturbs.

The one place that lists them. Known without importing JAX, because records and frames hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harness.program import calls, cost, hlo, jaxpr, stablehlo
from harness.program.fact import Fact, Source
from harness.workload.axes import RESERVED_AXES

FACTS: dict[str, Fact] = {
    fact.name: fact
    for fact in (
        calls.TRACE,
        calls.LOWER,
        jaxpr.EQUATIONS,
        stablehlo.OPERATIONS,
        stablehlo.BYTES,
        hlo.INSTRUCTIONS,
        hlo.FUSIONS,
        hlo.CUSTOM_CALLS,
        hlo.WHILE_LOOPS,
        hlo.COLLECTIVES,
        hlo.LAUNCHES,
        *cost.COSTS,
        *cost.MEMORY,
    )
}
"""Every fact by its name, in the order of the stages that they are read off."""

TOTALS = tuple(FACTS)
"""The names of facts: one number each."""

BUILT = tuple(name for name, fact in FACTS.items() if fact.source != "calls")
"""Those of the program itself: equal in every process, and for every way to write it."""

RESERVED_AXES.update(FACTS)

FIRST = tuple(sorted((f for f in FACTS.values() if f.rank), key=lambda fact: fact.rank))
"""The facts that come first, where not all are shown."""

_PARTS = {fact.parts: fact.part for fact in FACTS.values() if fact.parts}

if TYPE_CHECKING:

    class Facts(msgspec.Struct):
        """What was built for one case; a number is None where JAX or the back end does not say."""

        def __init__(self, **facts: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...
else:
    Facts = msgspec.defstruct(
        "Facts",
        [
            *((name, fact.type | None, None) for name, fact in FACTS.items()),
            *(
                (name, dict[str, int], msgspec.field(default_factory=dict))
                if part == "kind"
                else (name, list[int | None], msgspec.field(default_factory=list))
                for name, part in _PARTS.items()
            ),
        ],
        omit_defaults=True,
        module=__name__,
    )


def facts_of(traced: Any, lowered: Any, compiled: Any) -> Facts:
    """Return the facts of a program.

    `traced`, `lowered` and `compiled` are the objects of `jax.stages`; each may be None, and its
    facts are then None (or empty) as well; so are Python's calls. The same program gives equal
    facts in every process.
    """
    values: dict[str, Any] = {}
    if traced is not None:
        values |= read("jaxpr", traced.jaxpr)
    if lowered is not None:
        values |= read("stablehlo", lowered)
    if compiled is not None:
        text = compiled.as_text()
        program = hlo.from_text(text) if text else None
        values |= read("hlo", program)
        calls = (hlo.called(program), hlo.hidden_calls(program)) if program else ()
        values |= read("cost", cost.analysis(compiled, *calls))
        values |= read("memory", compiled.memory_analysis())
    return Facts(**values)


def read(source: Source, thing: Any) -> dict[str, Any]:
    """Return the facts that are read off one thing, and their parts; none where it is None."""
    values: dict[str, Any] = {}
    for fact in FACTS.values():
        if fact.source == source and thing is not None:
            value = fact.read(thing)
            values[fact.name] = fact.total(value)
            if fact.parts and value is not None:
                values[fact.parts] = value
    return values
