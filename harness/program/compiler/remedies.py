"""What is known to make compiles slow, found in one program, and what helps against it.

Where the harness can write the same program with a remedy by itself, that can be tried.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from harness.program.compiler.callers import made_at
from harness.program.compiler.inside import Inside, Remedy
from harness.program.compiler.loops import LEAST_TURNS, placed, text_of, written_out
from harness.program.compiler.rolled import Values, rolled
from harness.program.compiler.tree import FOLDING
from harness.program.jaxpr import CALLS, every, nested, opened

LEAST_SHARE = 0.1
"""Of the compile's time, or of the program's equations, that something must have to be told."""

LEAST_BYTES = 2**20
MOST_EQUATIONS = 200_000

_KERNELS = {
    "sort": "sort fewer keys at once, or sort one array and take the others by its indices",
    "scatter": "write with a mask or `jax.lax.dynamic_update_slice` where the places are known",
}
"""What helps against operations whose kernels cost much, by the beginning of JAX's name."""


_OTHER_SHAPES = "only its author knows how to give all turns one shape"

_CALLS_OUT = {"pure_callback", "ffi_call"}
"""JAX's primitives without an effect that XLA has no code for."""

Variant = Callable[[Any], tuple[Callable[..., Any], list[Any]] | str]
"""Takes a `ClosedJaxpr`; gives a function and the shapes of what it takes, or why there is none."""


class TriableRemedy(NamedTuple):
    """A remedy, and the program that has it, where the harness can make that by itself."""

    remedy: Remedy
    variant: Variant | None = None


def remedies(jaxpr: Any, inside: Inside) -> list[TriableRemedy]:
    """Return what makes a compile slow, as far as it is known, the dearest first.

    `jaxpr` is the `ClosedJaxpr` that was compiled.
    """
    found = [*_constants(jaxpr, inside), *_unrolled(jaxpr), *_dear(jaxpr, inside)]
    found = [*{(one.remedy.cause, one.remedy.line): one for one in found[::-1]}.values()]
    return sorted(found, key=lambda one: one.remedy.worth_s(inside.wall_s), reverse=True)


def _constants(jaxpr: Any, inside: Inside) -> Iterator[TriableRemedy]:
    # XLA's client is handed all of them before it begins with a pass; folding is told by itself.
    cost = inside.tree.own_wall_s
    pairs = zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True)
    sizes = {id(var): int(getattr(value, "nbytes", 0)) for var, value in pairs}
    if sum(sizes.values()) < LEAST_BYTES or cost < LEAST_SHARE * inside.wall_s:
        return
    largest = max(sizes, key=lambda key: sizes[key])
    line = next((_line(one) for one in every(jaxpr) if largest in map(id, one.invars)), "")
    cause = f"constants of {sum(sizes.values()) / 1e6:,.0f} MB are part of the program"
    remedy = Remedy(cause, line, "pass them as arguments", cost)
    yield TriableRemedy(remedy, constants_as_arguments)


def _dear(jaxpr: Any, inside: Inside) -> Iterator[TriableRemedy]:
    def elements(equation: Any) -> int:
        return sum(math.prod(var.aval.shape) for var in (*equation.invars, *equation.outvars))

    folding = _group(inside, FOLDING)
    if folding >= LEAST_SHARE * inside.wall_s:
        cause = "constant folding: XLA computes what depends on no argument"
        advice = "compute it before with NumPy, or from an argument"
        inner = opened(jaxpr).jaxpr
        folded = [*independent(inner, {*inner.constvars}, deep=True)]
        line = _line(max(folded, key=elements)) if folded else ""
        yield TriableRemedy(Remedy(cause, line, advice, folding), computed_before)
    for name, advice in _KERNELS.items():
        costs: dict[str, float] = defaultdict(float)
        for kernel in inside.kernels:
            written = "dynamic-update-slice" in kernel.name  # XLA has done it itself
            if kernel.op_name.rpartition("/")[2].startswith(name) and not written:
                costs[f"{kernel.function} {kernel.file}:{kernel.line}"] += kernel.wall_s
        for line, cost in costs.items():
            if cost >= LEAST_SHARE * inside.wall_s:
                yield TriableRemedy(Remedy(f"kernels of {name}", line, advice, cost))


def _unrolled(jaxpr: Any) -> Iterator[TriableRemedy]:
    """Yield what is written out many times over: in a loop of Python's, a scan, or a sort."""
    made = list(itertools.islice(placed(jaxpr), MOST_EQUATIONS))
    for one in made:
        name, params = one.equation.primitive.name, one.equation.params
        turns = params.get("unroll", 1)
        if name == "scan" and turns is not True and turns >= LEAST_TURNS:
            cause, advice = f"a scan is unrolled by {turns}", "give it a smaller `unroll`"
            yield TriableRemedy(Remedy(cause, one.line, advice), not_unrolled)
        if name == "sort" and len(one.equation.invars) >= LEAST_TURNS:
            cause = f"a sort of {len(one.equation.invars)} arrays by {params['num_keys']} of them"
            yield TriableRemedy(Remedy(cause, one.line, _KERNELS["sort"]))
    variant: Variant | None = rolled
    for each in written_out(made, LEAST_SHARE * len(made)):
        cause = f"{each.equations:,} of {len(made):,} equations stand there {each.turns} times over"
        advice = "`jax.lax.scan` or `fori_loop` builds its body once"
        if not each.in_loop:
            advice = f"if that is a loop, {advice}"
        elif not each.same_shapes:
            cause += ", of other shapes"
            advice = f"with arrays of one shape, and a mask, {advice}"
        usable = variant if each.same_shapes else None
        untried = ""
        if usable is None:
            untried = "the first trial rolls all loops" if each.same_shapes else _OTHER_SHAPES
        share = each.equations / len(made)
        remedy = Remedy(cause, text_of(each.place), advice, untried=untried, share=share)
        yield TriableRemedy(remedy, usable)
        variant = variant if usable is None else None


def _line(equation: Any) -> str:
    path = made_at(equation.source_info.traceback)
    return text_of(path[-1]) if path else ""


def _group(inside: Inside, name: str) -> float:
    return sum(one.wall_s for one in inside.groups if one.name == name)


# The same program written otherwise


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
    known = Values(zip(inner.constvars, jaxpr.consts, strict=True))
    before = [*independent(inner, {*inner.constvars})]
    known.run(before)
    done = set(map(id, before))
    left = [one for one in inner.eqns if id(one) not in done]
    needed = {var for one in left for var in one.invars if not isinstance(var, Literal)}
    needed |= {var for var in inner.outvars if not isinstance(var, Literal)}
    taken = [var for var in known if var in needed]

    def program(*arguments: Any) -> list[Any]:
        values = Values(zip((*taken, *inner.invars), arguments, strict=True))
        values.run(left)
        return [*map(values.read, inner.outvars)]

    return program, [*(shape(known[var]) for var in taken), *map(shape, jaxpr.in_avals)]


def independent(jaxpr: Any, known: set[Any], deep: bool = False) -> Iterator[Any]:
    """Yield the equations of a `Jaxpr` that XLA can fold: from what is `known`, and no argument.

    With `deep` those as well that stand in functions called with arguments beside what is known.
    """
    for one in jaxpr.eqns:
        folds = not one.effects and one.primitive.name not in _CALLS_OUT
        given = [isinstance(var, Literal) or var in known for var in one.invars]
        if folds and all(given):
            known.update(one.outvars)
            yield one
        elif deep and one.primitive.name in CALLS:
            inner = one.params["jaxpr"].jaxpr
            inside = {var for var, is_given in zip(inner.invars, given, strict=True) if is_given}
            yield from independent(inner, inside | {*inner.constvars}, deep)


def shape(value: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of an array or of what stands for one."""
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
