"""Count the equations of a jaxpr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    waiting = [getattr(jaxpr, "jaxpr", jaxpr)]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            for value in equation.params.values():
                waiting.extend(nested(value))


def nested(value: Any) -> Iterator[Any]:
    """Yield the jaxprs that a parameter of an equation holds."""
    # By its equations: `jax.extend.core`, which has the types, imports Pallas (14 ms).
    if hasattr(value, "eqns"):
        yield getattr(value, "jaxpr", value)
    elif isinstance(value, (tuple, list)):  # `branches` of cond, `jaxprs` of linear solves
        for item in value:
            yield from nested(item)


CALLS = ("jit", "pjit")
"""Primitives that call a jitted function, whose jaxpr is their parameter `jaxpr`."""


def opened(jaxpr: Any) -> Any:
    """Return the `ClosedJaxpr` that a program with nothing but a call to it calls, or itself."""
    while len(jaxpr.jaxpr.eqns) == 1 and jaxpr.jaxpr.eqns[0].primitive.name in CALLS:
        jaxpr = jaxpr.jaxpr.eqns[0].params["jaxpr"]
    return jaxpr


_CALLS_OUT = {"pure_callback", "ffi_call"}
"""JAX's primitives without an effect that XLA has no code for."""


def independent(jaxpr: Any, decided: set[Any], deep: bool = False) -> Iterator[Any]:
    """Yield the equations of a `Jaxpr` that XLA can fold: from what is `known`, and no argument.

    With `deep` those as well that stand in functions called with arguments beside what is known.
    """
    for one in jaxpr.eqns:
        folds = not one.effects and one.primitive.name not in _CALLS_OUT
        given = [hasattr(var, "val") or var in decided for var in one.invars]
        if folds and all(given):
            decided.update(one.outvars)
            yield one
        elif deep and one.primitive.name in CALLS:
            inner = one.params["jaxpr"].jaxpr
            inside = {var for var, is_given in zip(inner.invars, given, strict=True) if is_given}
            yield from independent(inner, inside | {*inner.constvars}, deep)


def bound(equation: Any, values: Sequence[Any]) -> list[Any]:
    """Return the outputs of an equation for values of its inputs."""
    params = equation.primitive.get_bind_params(equation.params)
    made = equation.primitive.bind(*values, **params)
    return list(made) if equation.primitive.multiple_results else [made]


EQUATIONS = Fact(
    name="jaxpr_equations",
    source="jaxpr",
    meaning="equations of the jaxpr, nested ones included",
    noun="jaxpr equation",
    read=equations,
)
