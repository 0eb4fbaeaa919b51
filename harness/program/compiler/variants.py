"""One program written otherwise, as a remedy of a slow build would have it, to be tried.

Each takes a `ClosedJaxpr` and gives a function and the shapes of what it takes, or a code that says
why there is no such program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from harness.program.compiler.rolled import Values, rolled
from harness.program.jaxpr import independent, nested, opened

Variant = Callable[[Any], tuple[Callable[..., Any], list[Any]] | str]


def constants_as_arguments(jaxpr: Any) -> tuple[Callable[..., Any], list[Any]] | str:
    """Return the program that takes its constants as arguments."""
    jaxpr = opened(jaxpr)
    count = len(jaxpr.consts)
    if not count:
        return "nested"

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
    env = Values(zip(inner.constvars, jaxpr.consts, strict=True))
    before = [*independent(inner, {*inner.constvars})]
    env.run(before)
    done = set(map(id, before))
    left = [one for one in inner.eqns if id(one) not in done]
    needed = {var for one in left for var in one.invars if not isinstance(var, Literal)}
    needed |= {var for var in inner.outvars if not isinstance(var, Literal)}
    taken = [var for var in env if var in needed]

    def program(*arguments: Any) -> list[Any]:
        values = Values(zip((*taken, *inner.invars), arguments, strict=True))
        values.run(left)
        return [*map(values.read, inner.outvars)]

    return program, [*(shape(env[var]) for var in taken), *map(shape, jaxpr.in_avals)]


def shape(value: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of an array or of what stands for one."""
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


VARIANTS: dict[str, Variant] = {
    "constants": constants_as_arguments,
    "folding": computed_before,
    "unrolled scan": not_unrolled,
    "loop": rolled,
    "repeated": rolled,
}
"""What is tried against a cause, by its kind."""
