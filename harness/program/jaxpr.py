"""Count the equations of a jaxpr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.extend import core


def equations(jaxpr: Any) -> int:
    """Return how many equations a jaxpr and the jaxprs nested in it hold.

    `jaxpr` is a `Jaxpr` or `ClosedJaxpr`. A nested one is any that stands among the parameters of
    an equation: those of `jit`, `scan`, `while`, `cond`, `custom_jvp_call`, `shard_map`, but also
    the update of a scatter. One that several equations share counts once, because it was traced
    and is lowered once; so does the body of a loop.
    """
    seen: set[int] = set()
    waiting = [_open(jaxpr)]
    count = 0
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        count += len(found.eqns)
        for equation in found.eqns:
            for value in equation.params.values():
                waiting.extend(_nested(value))
    return count


def _open(jaxpr: Any) -> Any:
    return jaxpr.jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else jaxpr


def _nested(value: Any) -> Iterator[Any]:
    if isinstance(value, (core.Jaxpr, core.ClosedJaxpr)):
        yield _open(value)
    elif isinstance(value, (tuple, list)):  # `branches` of cond, `jaxprs` of linear solves
        for item in value:
            yield from _nested(item)
