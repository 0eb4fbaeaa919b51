"""What a program has many times over, and the loop of Python's in the source that wrote it so."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from harness.program.compiler.places import Place, made_at
from harness.program.jaxpr import nested

LEAST_TURNS = 8
"""Fewer turns are no loop."""

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = ast.For | ast.AsyncFor | ast.While
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class WrittenOut(NamedTuple):
    """Equations that one place of the source has put into the program again and again."""

    equations: int
    turns: int
    place: Place
    """Of the loop, or of what most of the equations are called from."""
    in_loop: bool
    """Whether the source has a loop there."""
    same_shapes: bool
    """Whether each turn works on arrays of the same shapes."""


class Placed(NamedTuple):
    """An equation, and what made it."""

    equation: Any
    path: tuple[Place, ...]
    """The user's lines, the outermost first."""
    at: int
    """Stands for its primitive and the instructions: in a loop they are the same in each turn."""
    around: Placed | None
    """The equation whose jaxpr it is in."""
    codes: Sequence[CodeType]
    """The frames of its traceback, the innermost first."""
    instructions: Sequence[int]


def placed(jaxpr: Any, around: Placed | None = None) -> Iterator[Placed]:
    """Yield all equations, those that a jitted function holds at each call of it."""
    path, at = (around.path, around.at) if around else ((), 0)
    for each in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        trace = each.source_info.traceback
        codes, instructions = trace.raw_frames() if trace is not None else ((), ())
        # Each frame once: a function that calls itself makes the same at every depth.
        frames = dict.fromkeys(zip(map(id, codes), instructions, strict=True))
        own_at = hash((at, each.primitive.name, *frames))
        own = made_at(trace)
        # JAX's tracebacks begin where the jaxpr does, or where the program does.
        own = own if own[:1] == path[:1] else (*path, *own)
        one = Placed(each, own, own_at, around, codes, instructions)
        yield one
        for value in each.params.values():
            for inside in nested(value):
                yield from placed(inside, one)


def written_out(
    equations: Sequence[Placed], least: float, most_of: float = 0.0
) -> list[WrittenOut]:
    """Return what is written out at least :data:`LEAST_TURNS` times, the most equations first.

    Args:
        equations: of a program.
        least: how many equations must be of one place.
        most_of: how many must be of one place that is no loop.
    """
    loops: dict[Place, list[Placed]] = defaultdict(list)
    around: dict[Place, Place] = {}
    others = []
    for one in equations:
        own = loops_around(one)
        around.update(itertools.pairwise(own))
        if own:
            loops[own[0]].append(one)
        elif one.path:
            others.append(one)
    repeated = [one for one in _called(others) if one.equations >= most_of]
    turns = {loop: _turns(map(_key, inside)) for loop, inside in loops.items()}
    whole = {loop: _turns(one.at for one in inside) for loop, inside in loops.items()}
    for loop in sorted(loops, key=lambda loop: -len(_outside(loop, around))):
        # One of few turns, in a loop, is part of what each turn of that does.
        for outer in _outside(loop, around):
            most = LEAST_TURNS * turns.get(outer, 0)
            if outer in loops and LEAST_TURNS <= turns[outer] <= turns[loop] < most:
                loops[outer] += loops.pop(loop)
                break
    for loop, inside in loops.items():
        most = max(turns[loop], whole[loop])
        repeated.append(WrittenOut(len(inside), most, loop, True, turns[loop] >= LEAST_TURNS))
    repeated = [one for one in repeated if one.turns >= LEAST_TURNS and one.equations >= least]
    return sorted(repeated, key=lambda one: -one.equations)


def _key(one: Placed) -> tuple[Hashable, ...]:
    return one.at, *(str(var.aval) for var in one.equation.outvars)


def _turns(keys: Iterable[Hashable]) -> int:
    """Return how often most things are there, the least where as many are there more often.

    A gradient has some of them several times in each turn.
    """
    often = Counter(Counter(keys).values())
    return max(sorted(often), key=often.__getitem__, default=0)


def _called(equations: Sequence[Placed]) -> Iterator[WrittenOut]:
    """Yield the innermost line that most are called from, of what no loop in a source has made."""
    often = Counter(map(_key, equations))
    again = [one for one in equations if often[_key(one)] >= 2 * LEAST_TURNS]
    if where := held(again):
        inside = [one for one in again if where in one.path]
        yield WrittenOut(len(inside), _turns(map(_key, inside)), where, False, True)


def held(equations: Sequence[Placed]) -> Place | None:
    """Return the innermost line that nine of ten that any line holds are called from."""
    lines = Counter(place for one in equations for place in dict.fromkeys(one.path))
    depth: Counter[Place] = Counter()
    for one in equations:
        depth.update({place: n for n, place in enumerate(dict.fromkeys(one.path))})
    most = 0.9 * max(lines.values(), default=0)
    able = [place for place, count in lines.items() if count >= most]
    return max(able, key=lambda place: depth[place] / lines[place], default=None)


def loops_around(one: Placed) -> list[Place]:
    """Return the loops of the source that an equation is made in, the innermost first."""
    return [loop for place in one.path[::-1] for loop in _loops_at(place)]


def _outside(loop: Place, around: Mapping[Place, Place]) -> list[Place]:
    """Return the loops that a loop stands in, the innermost first, each once."""
    outer: list[Place] = []
    while loop in around and around[loop] not in outer:
        loop = around[loop]
        outer.append(loop)
    return outer


def _loops_at(place: Place) -> list[Place]:
    """Return the loops that a line of a function stands in, the innermost first.

    What stands in a lambda is of the loop that the function around it stands in.
    """
    function, file, line = place
    if function.endswith("<lambda>"):
        return []
    around = [one for one in _loops(file) if one[0] <= line <= one[1]]
    around.sort(key=lambda one: (one[0], -one[1], one[2]))  # the outermost first
    inside = itertools.takewhile(lambda one: one[2], reversed(around))
    return [Place(function, file, begin) for _, _, begin in inside]


@functools.lru_cache(maxsize=64)
def _loops(file: str) -> list[tuple[int, int, int]]:
    """Return the first and last line of each body of a loop in a file, and the loop's line.

    That of a function is among them, with 0: what is in it runs when it is called.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS | _LOOPS):
            begin = 0 if isinstance(node, _FUNCTIONS) else node.lineno
            spans.append((node.body[0].lineno, node.body[-1].end_lineno or 0, begin))
        elif isinstance(node, _COMPREHENSIONS):
            spans.append((node.lineno, node.end_lineno or 0, node.lineno))
    return spans
