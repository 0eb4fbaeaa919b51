"""Count the equations of a jaxpr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.program.fact import Fact


def equations(jaxpr: Any) -> int:
    """Return how many equations a jaxpr and the jaxprs nested in it hold.

    `jaxpr` is a `Jaxpr` or `ClosedJaxpr`. A nested one is any that stands among the parameters of
    an equation: those of `jit`, `scan`, `while`, `cond`, `custom_jvp_call`, `shard_map`, but also
    the update of a scatter. One that several equations share counts once, because it was traced
    and is lowered once; so does the body of a loop.
    """
    return sum(1 for _ in every(jaxpr))


def every(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations that :func:`equations` counts."""
    seen: set[int] = set()
    waiting = [_open(jaxpr)]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        for equation in found.eqns:
            yield equation
            for value in equation.params.values():
                waiting.extend(nested(value))


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def nested(value: Any) -> Iterator[Any]:
    """Yield the jaxprs that a parameter of an equation holds."""
    # By its equations: `jax.extend.core`, which has the types, imports Pallas (14 ms).
    if hasattr(value, "eqns"):
        yield _open(value)
    elif isinstance(value, (tuple, list)):  # `branches` of cond, `jaxprs` of linear solves
        for item in value:
            yield from nested(item)


EQUATIONS = Fact(
    name="jaxpr_equations",
    source="jaxpr",
    unit="count",
    better="less",
    meaning="equations of the jaxpr, nested ones included",
    noun="jaxpr equation",
    read=equations,
)
