"""The same program written otherwise, made by the harness itself: so that a remedy can be tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from harness.program.jaxpr import nested

_CALLS_OUT = {"pure_callback", "ffi_call"}
"""JAX's primitives without an effect that XLA has no code for."""

Variant = Callable[[Any], tuple[Callable[..., Any], list[Any]] | None]
"""Takes a `ClosedJaxpr`; gives a function and the shapes of what it takes, or None."""


def constants_as_arguments(jaxpr: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the program that takes its constants as arguments."""
    count = len(jaxpr.consts)

    def program(*arguments: Any) -> Any:
        return jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, arguments[:count]))(*arguments[count:])

    return program, [*map(shape, jaxpr.consts), *map(shape, jaxpr.in_avals)]


def not_unrolled(jaxpr: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the program in which no scan is unrolled."""
    done: dict[int, Any] = {}
    return jaxpr_as_fun(_not_unrolled(jaxpr, done)), [*map(shape, jaxpr.in_avals)]


def _not_unrolled(jaxpr: Any, done: dict[int, Any]) -> Any:
    if id(jaxpr) not in done:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner is not jaxpr:
            done[id(jaxpr)] = jaxpr.replace(jaxpr=_not_unrolled(inner, done))
        else:
            made = []
            for one in jaxpr.eqns:
                params = {name: _of_param(each, done) for name, each in one.params.items()}
                if "unroll" in params:
                    params["unroll"] = 1
                made.append(one.replace(params=params))
            done[id(jaxpr)] = jaxpr.replace(eqns=made)
    return done[id(jaxpr)]


def _of_param(value: Any, done: dict[int, Any]) -> Any:
    if hasattr(value, "eqns"):
        return _not_unrolled(value, done)
    if type(value) in (tuple, list) and any(nested(value)):
        return type(value)(_of_param(one, done) for one in value)
    return value


def computed_before(jaxpr: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the program that takes what depends on no argument as arguments.

    It is computed here, operation by operation, so that nothing of it is folded.
    """
    jaxpr = opened(jaxpr)
    inner = jaxpr.jaxpr
    known = dict(zip(inner.constvars, jaxpr.consts, strict=True))
    before = independent(jaxpr)
    for one in before:
        values = [var.val if isinstance(var, Literal) else known[var] for var in one.invars]
        known.update(zip(one.outvars, bound(one, values), strict=True))
    done = set(map(id, before))
    left = [one for one in inner.eqns if id(one) not in done]
    needed = {var for one in left for var in one.invars if not isinstance(var, Literal)}
    needed |= {var for var in inner.outvars if not isinstance(var, Literal)}
    taken = [var for var in known if var in needed]

    def program(*arguments: Any) -> list[Any]:
        values = dict(zip((*taken, *inner.invars), arguments, strict=True))

        def read(var: Any) -> Any:
            return var.val if isinstance(var, Literal) else values[var]

        for one in left:
            values.update(zip(one.outvars, bound(one, [*map(read, one.invars)]), strict=True))
        return [*map(read, inner.outvars)]

    return program, [*(shape(known[var]) for var in taken), *map(shape, jaxpr.in_avals)]


def independent(jaxpr: Any) -> list[Any]:
    """Return the equations of a `ClosedJaxpr` that XLA can fold: from no argument."""
    known = set(jaxpr.jaxpr.constvars)
    found = []
    for one in jaxpr.jaxpr.eqns:
        inputs = [var for var in one.invars if not isinstance(var, Literal)]
        folds = not one.effects and one.primitive.name not in _CALLS_OUT
        if folds and all(var in known for var in inputs):
            known.update(one.outvars)
            found.append(one)
    return found


def opened(jaxpr: Any) -> Any:
    """Return the `ClosedJaxpr` that a program with nothing but a call to it calls, or itself."""
    while len(jaxpr.jaxpr.eqns) == 1 and jaxpr.jaxpr.eqns[0].primitive.name in ("jit", "pjit"):
        jaxpr = jaxpr.jaxpr.eqns[0].params["jaxpr"]
    return jaxpr


def bound(equation: Any, values: Sequence[Any]) -> list[Any]:
    """Return the outputs of an equation for values of its inputs."""
    params = equation.primitive.get_bind_params(equation.params)
    made = equation.primitive.bind(*values, **params)
    return list(made) if equation.primitive.multiple_results else [made]


def shape(value: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of an array or of what stands for one."""
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
