"""A program with the same equations many times over, as loops of :func:`jax.lax.scan`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from harness.program.compiler.loops import LEAST_TURNS
from harness.program.jaxpr import CALLS, bound, nested, opened
from harness.program.jaxpr import equations as count

LEAST_SHARE = 0.02
"""Of the program's equations, that a loop must cover."""

LARGE_SHARE = 0.1
"""Of the program's equations, in a function that is put in place of its call."""

MOST_PERIOD = 5_000
"""Equations of one turn."""

UNEQUAL, TAKES_MORE = "unequal turns", "takes more"
"""Why there is no such loop: no equal turns follow one another, or a turn takes more than what
the turn before it made and what is its own."""

_VIEWS = ("slice", "squeeze")
"""Primitives that take one turn's part out of an array that holds those of all turns."""

Place = tuple[int, int]
"""An equation of a turn, by its number in it, and which of its outputs."""


class Loop(NamedTuple):
    """Equations that are there several times over, and what goes from turn to turn."""

    start: int
    """The first equation of the first turn, by its number in the program."""
    period: int
    turns: int
    carried: dict[Place, Any]
    """What a turn takes from the turn before it, and the first turn from outside."""
    varying: dict[Place, list[Any]]
    """The inputs, by equation and position, that each turn has its own of, from outside."""

    @property
    def stop(self) -> int:
        """Return the number of the first equation behind it."""
        return self.start + self.period * self.turns


class Part(NamedTuple):
    """One turn's part of an array that holds those of all turns."""

    whole: Any
    turn: int
    value: Any = None
    """Of the last turn, which the loop gives by itself."""


def rolled(jaxpr: Any) -> tuple[Callable[..., Any], list[Any]] | str:
    """Return a function that is the program with loops, and the shapes of what it takes.

    Equal runs of equations become the body of a scan where each turn takes what the turn before it
    made. Arguments of which each turn takes its own, such as weights by layer, are taken as one
    array each, as a program that is written with a scan has them; so are results of all turns.
    :data:`UNEQUAL` or :data:`TAKES_MORE` where there is no such loop.

    Args:
        jaxpr: a `ClosedJaxpr`.
    """
    jaxpr = _inlined(opened(jaxpr))
    equations = _views_first(jaxpr)
    least = len(equations) * LEAST_SHARE
    loops = [*_loops(equations, 0, len(equations), least)]
    if not loops:
        return TAKES_MORE if any(_repeated(np.array(_signs(equations)), least)) else UNEQUAL
    given = list(jaxpr.jaxpr.invars)
    stacks = _stacks(loops, given)
    alone = [var for var in given if not any(var in stack for stack in stacks)]
    shapes = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in alone]
    for stack in stacks:
        aval = stack[0].aval
        shapes.append(jax.ShapeDtypeStruct((len(stack), *aval.shape), aval.dtype))

    def program(*arguments: Any) -> list[Any]:
        values = Values(zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True))
        values.update(zip(alone, arguments[: len(alone)], strict=True))
        for stack, whole in zip(stacks, arguments[len(alone) :], strict=True):
            values.update({var: Part(whole, turn) for turn, var in enumerate(stack)})
        at = 0
        for loop in loops:
            values.run(equations[at : loop.start])
            values.turn(loop, equations)
            at = loop.stop
        values.run(equations[at:])
        return values.results(jaxpr.jaxpr.outvars)

    return program, shapes


class Values(dict[Any, Any]):
    """Values of variables, while a program is traced."""

    def read(self, var: Any) -> Any:
        """Return the value of a variable or literal."""
        if isinstance(var, Literal):
            return var.val
        value = self[var]
        if isinstance(value, Part) and value.value is not None:
            return value.value
        if isinstance(value, Part):
            return jax.lax.index_in_dim(value.whole, value.turn, keepdims=False)
        return value

    def run(self, equations: Sequence[Any]) -> None:
        """Add the outputs of equations, in their order."""
        for one in equations:
            self.update(zip(one.outvars, bound(one, [*map(self.read, one.invars)]), strict=True))

    def turn(self, loop: Loop, equations: Sequence[Any]) -> None:
        """Run a loop as a scan; the second turn's equations are its body."""
        body = equations[loop.start + loop.period : loop.start + 2 * loop.period]
        before = equations[loop.start : loop.start + loop.period]
        names = {place: before[place[0]].outvars[place[1]] for place in loop.carried}

        def step(carry: list[Any], own: list[Any]) -> tuple[list[Any], list[Any]]:
            inner = Values(self)
            inner.update(zip(names.values(), carry, strict=True))
            given = dict(zip(loop.varying, own, strict=True))
            for number, one in enumerate(body):
                values = [
                    given[number, at] if (number, at) in given else inner.read(var)
                    for at, var in enumerate(one.invars)
                ]
                inner.update(zip(one.outvars, bound(one, values), strict=True))
            carried = [inner[body[n].outvars[at]] for n, at in loop.carried]
            return carried, [inner[var] for one in body for var in one.outvars]

        first = [jnp.asarray(self.read(var)) for var in loop.carried.values()]
        avals = [names[place].aval for place in loop.carried]
        first = [one.astype(aval.dtype) for one, aval in zip(first, avals, strict=True)]
        stacked = [self.stack(each) for each in loop.varying.values()]
        last, made = jax.lax.scan(step, first, stacked, length=loop.turns)
        ends = dict(zip(loop.carried, last, strict=True))
        places = [(n, at) for n, one in enumerate(body) for at in range(len(one.outvars))]
        for (number, at), whole in zip(places, made, strict=True):
            for turn in range(loop.turns):
                one = equations[loop.start + turn * loop.period + number]
                value = ends.get((number, at)) if turn == loop.turns - 1 else None
                self[one.outvars[at]] = Part(whole, turn, value)

    def stack(self, each: Sequence[Any]) -> Any:
        """Return what each turn has its own of as one array."""
        if all(isinstance(var, Literal) for var in each):
            return np.array([var.val for var in each], each[0].aval.dtype)
        runs: list[list[Any]] = []
        for var in each:
            value = None if isinstance(var, Literal) else self[var]
            if not isinstance(value, Part):
                value = jnp.asarray(self.read(var), var.aval.dtype)
            if runs and _follows(runs[-1], value):
                runs[-1].append(value)
            else:
                runs.append([value])
        arrays = [*map(_of_run, runs)]
        return arrays[0] if len(arrays) == 1 else jnp.concatenate(arrays)

    def results(self, outvars: Sequence[Any]) -> list[Any]:
        """Return the program's results; those that are parts of one array as that array."""
        values = [None if isinstance(var, Literal) else self[var] for var in outvars]
        parts = [one for one in values if isinstance(one, Part)]
        wholes = {id(one.whole): one.whole for one in parts if one.value is None}
        inside = {id(one) for one in parts if id(one.whole) in wholes}
        pairs = zip(outvars, values, strict=True)
        return [*(self.read(var) for var, one in pairs if id(one) not in inside), *wholes.values()]


def _follows(run: Sequence[Any], value: Any) -> bool:
    """Tell whether a part is the next one of its array, onwards or back, after others."""
    if not (isinstance(value, Part) and isinstance(run[0], Part) and value.whole is run[0].whole):
        return False
    by: int = value.turn - run[-1].turn
    before: int = run[-1].turn - run[-2].turn if len(run) > 1 else by
    return by == before and abs(by) == 1


def _of_run(run: Sequence[Any]) -> Any:
    """Return parts of one array, or one other value, as an array of turns."""
    if not isinstance(run[0], Part):
        return run[0][None]
    low, high = sorted((run[0].turn, run[-1].turn))
    own = jax.lax.slice_in_dim(run[0].whole, low, high + 1)
    return own if run[0].turn == low else jax.lax.rev(own, (0,))


def _inlined(jaxpr: Any) -> Any:
    """Return a `ClosedJaxpr` in place of which much of it stands in functions that it calls."""
    least = LARGE_SHARE * count(jaxpr)

    def is_large(one: Any) -> bool:
        return one.primitive.name in CALLS and count(one.params["jaxpr"]) >= least

    def run(inner: Any, arguments: Sequence[Any]) -> list[Any]:
        values = Values(zip(inner.jaxpr.constvars, inner.consts, strict=True))
        values.update(zip(inner.jaxpr.invars, arguments, strict=True))
        for one in inner.jaxpr.eqns:
            if is_large(one):
                made = run(one.params["jaxpr"], [*map(values.read, one.invars)])
                values.update(zip(one.outvars, made, strict=True))
            else:
                values.run([one])
        return [*map(values.read, inner.jaxpr.outvars)]

    if not any(map(is_large, jaxpr.jaxpr.eqns)):
        return jaxpr
    return jax.make_jaxpr(lambda *arguments: run(jaxpr, arguments))(*jaxpr.in_avals)


def _views_first(jaxpr: Any) -> list[Any]:
    """Return the equations; those that only take parts of an array where that is made."""
    views: dict[Any, list[Any]] = defaultdict(list)
    others: list[Any] = []
    for one in jaxpr.jaxpr.eqns:
        is_view = one.primitive.name in _VIEWS and not isinstance(one.invars[0], Literal)
        (views[one.invars[0]] if is_view else others).append(one)

    def of(made: Sequence[Any]) -> Iterator[Any]:
        for view in (each for var in made for each in views[var]):
            yield view
            yield from of(view.outvars)

    ordered = [*of([*jaxpr.jaxpr.invars, *jaxpr.jaxpr.constvars])]
    for one in others:
        ordered += [one, *of(one.outvars)]
    return ordered


def _loops(equations: Sequence[Any], start: int, stop: int, least: float) -> Iterator[Loop]:
    """Yield the loops of a stretch of a program, in order."""
    signs = np.array(_signs(equations[start:stop]))
    for at, period, turns in _repeated(signs, least):
        loop = _loop(equations, start + at, period, turns)
        if loop is not None:
            yield from _loops(equations, start, loop.start, least)
            yield loop
            yield from _loops(equations, loop.stop, stop, least)
            return


def _signs(equations: Sequence[Any]) -> list[int]:
    """Return a number per equation, equal for those that do the same."""
    numbers: dict[tuple[Any, ...], int] = {}
    texts: dict[int, str] = {}
    signs = []
    for one in equations:
        params = []
        for name, value in one.params.items():
            inner = [*nested(value)]
            if inner and id(value) not in texts:
                texts[id(value)] = str(value)
            text = texts[id(value)] if inner else str(value)
            params.append((name, re.sub(r"0x[0-9a-f]+", "", text)))
        avals = [str(var.aval) for var in (*one.invars, *one.outvars)]
        key = (one.primitive.name, tuple(params), tuple(avals))
        signs.append(numbers.setdefault(key, len(numbers)))
    return signs


def _repeated(signs: np.ndarray[Any, Any], least: float) -> Iterator[tuple[int, int, int]]:
    """Yield start, period and turns of what repeats, what covers most first."""
    stretches = []
    for period in range(1, min(len(signs) // LEAST_TURNS, MOST_PERIOD) + 1):
        differs = np.flatnonzero(signs[period:] != signs[:-period])
        edges = np.concatenate([[-1], differs, [len(signs) - period]])
        runs = np.diff(edges) - 1
        longest = int(runs.argmax())
        turns = int(runs[longest]) // period + 1
        if turns >= LEAST_TURNS and turns * period >= least:
            stretches.append((turns * period, -period, int(edges[longest]) + 1, turns))
    stretches.sort(reverse=True)
    for covered, period, start, turns in stretches:
        if covered >= 0.5 * stretches[0][0]:
            yield start, -period, turns


def _loop(equations: Sequence[Any], start: int, period: int, turns: int) -> Loop | None:
    """Return the loop of so many turns, or of some fewer where the first and last differ."""
    for first, last in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (2, 2)):
        if turns - first - last >= LEAST_TURNS:
            loop = _consistent(equations, start + first * period, period, turns - first - last)
            if loop is not None:
                return loop
    return None


def _consistent(equations: Sequence[Any], start: int, period: int, turns: int) -> Loop | None:
    own = equations[start : start + period * turns]
    made = {
        var: (number // period, (number % period, at))
        for number, one in enumerate(own)
        for at, var in enumerate(one.outvars)
    }
    loop = Loop(start, period, turns, {}, {})
    for number in range(period):
        for at in range(len(own[number].invars)):
            each = [own[turn * period + number].invars[at] for turn in range(turns)]
            sources = [None if isinstance(var, Literal) else made.get(var) for var in each]
            if not any(sources):
                if any(not _same(each[0], var) for var in each):
                    loop.varying[number, at] = each
                continue
            second = sources[1]
            if second is None or second[0] not in (0, 1):
                return None
            behind, place = 1 - second[0], second[1]
            wanted = [(turn - behind, place) for turn in range(behind, turns)]
            if sources[behind:] != wanted or (behind and sources[0]):
                return None
            if behind and not _same(loop.carried.setdefault(place, each[0]), each[0]):
                return None
    return loop


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Literal) and isinstance(other, Literal):
        return bool(np.array_equal(one.val, other.val))
    return one is other


def _stacks(loops: Sequence[Loop], given: Sequence[Any]) -> list[list[Any]]:
    """Return the arguments of which each turn of a loop has its own, in the order of turns."""
    stacks: list[list[Any]] = []
    taken: set[Any] = set()
    inputs = set(given)
    for loop in loops:
        for each in loop.varying.values():
            if all(not isinstance(var, Literal) and var in inputs for var in each):
                own = set(each)
                if len(own) == len(each) and not own & taken:
                    taken |= own
                    stacks.append(each)
    return stacks
