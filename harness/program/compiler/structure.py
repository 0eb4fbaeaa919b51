"""What a program is made of, as far as that makes its building slow: read from its jaxpr.

A program that is followed runs this, where it is compiled: it needs the standard library alone, and
what it hands on is JSON. What it costs is judged elsewhere, in
:mod:`harness.program.compiler.causes`.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from types import CodeType
from typing import Any, NamedTuple

from harness.jaxhooks import jax_names
from harness.program.compiler.loops import (
    LEAST_TURNS,
    Placed,
    held,
    loops_around,
    placed,
    written_out,
)
from harness.program.compiler.places import Place, is_users, made_at, place_of
from harness.program.jaxpr import every, independent, nested, opened

LEAST_SHARE = 0.1
"""Of the compile's time, or of the program's equations, that a cause must have."""

LEAST_LEAVES = 64
LEAST_COPIES = 3
MOST_EQUATIONS = 200_000


@dataclass(slots=True)
class WrittenCause:
    """A cause that a jaxpr shows; the fields are those of a `CompileCause`."""

    kind: str
    place: Place | None = None
    name: str = ""
    by: Place | None = None
    count: int = 0
    keys: int = 0
    is_same: bool = True
    equations: int = 0
    of: int = 0


@dataclass(slots=True)
class Structure:
    """What a program is made of, as far as that makes its building slow."""

    equations: int
    constant_bytes: int
    constant_place: Place | None
    """Where the largest constant is used."""
    folded: Place | None
    """The line with most of what depends on no argument."""
    causes: list[WrittenCause]
    """Those that need no more than the jaxpr."""
    kernels: list[tuple[str, Place | None]]
    """Those that somebody wrote: their names, and the lines that call them."""
    release: str
    """Of JAX."""
    platform: str
    """Of the process: `cpu`, `gpu` or `tpu`."""


class _Row(NamedTuple):
    """A cause that one equation shows by itself."""

    kind: str
    primitive: str
    counted: Callable[[Any], int]
    """Of the equation; at least :attr:`least` of it are a cause."""
    least: int = LEAST_TURNS
    name: Callable[[Any], str] = lambda _: ""


def _dumps() -> Iterator[WrittenCause]:
    """Yield the setting for which XLA writes files of each compile."""
    if "--xla_dump_to=" in os.environ.get("XLA_FLAGS", ""):
        yield WrittenCause("dumps", name="XLA_FLAGS=--xla_dump_to")


def _integer_product(equation: Any) -> int:
    """Return the multiplications of a product that XLA:CPU has no fast code for, else 0."""
    result = equation.outvars[0].aval
    [contracted, _], _ = equation.params["dimension_numbers"]
    terms = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    is_slow = _is_integer(result.dtype) and result.dtype.name != "int32"
    return math.prod(result.shape) * terms if is_slow else 0


def _integer_convolution(equation: Any) -> int:
    """Return the multiplications of a convolution of integers, else 0."""
    result, kernel = equation.outvars[0].aval, equation.invars[1].aval
    features = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
    terms = math.prod(kernel.shape) // max(features, 1)
    return math.prod(result.shape) * terms if _is_integer(result.dtype) else 0


def _is_integer(dtype: Any) -> bool:
    return str(dtype.name).startswith(("int", "uint", "bool"))


def _dtype(equation: Any) -> str:
    return str(equation.outvars[0].aval.dtype.name)


_ROWS = (
    _Row("unrolled scan", "scan", lambda one: int(one.params.get("unroll", 1))),
    _Row("sort", "sort", lambda one: len(one.invars)),
    _Row("ragged dot", "ragged_dot_general", lambda one: one.invars[2].aval.shape[-1], 2),
    _Row("integer product", "dot_general", _integer_product, 2**20, _dtype),
    _Row("integer convolution", "conv_general_dilated", _integer_convolution, 2**20, _dtype),
)


def structure(jaxpr: Any) -> Structure:
    """Return what a `ClosedJaxpr` is made of."""
    values = {id(var): value for var, value in _constants(jaxpr)}
    for one in every(jaxpr):  # with jax_use_simplified_jaxpr_constants they are literals
        values |= {id(var.val): var.val for var in one.invars if hasattr(var, "val")}
    sizes = {key: int(getattr(value, "nbytes", 0)) for key, value in values.items()}
    largest = max(sizes, key=sizes.__getitem__, default=0)

    def takes(one: Any) -> bool:
        return any(largest in (id(var), id(getattr(var, "val", None))) for var in one.invars)

    def elements(equation: Any) -> int:
        return sum(math.prod(var.aval.shape) for var in (*equation.invars, *equation.outvars))

    inner = opened(jaxpr).jaxpr
    folded = max(independent(inner, {*inner.constvars}, deep=True), key=elements, default=None)
    made = list(itertools.islice(placed(jaxpr), MOST_EQUATIONS))
    return Structure(
        len(made),
        sum(sizes.values()),
        _place(next(filter(takes, every(jaxpr)), None)),
        _place(folded),
        [*_written(made, len(jaxpr.jaxpr.invars)), *_dumps()],
        [*called_kernels(jaxpr)],
        jax_names.public().__version__,
        jax_names.public().default_backend(),
    )


def _constants(jaxpr: Any) -> Iterator[tuple[Any, Any]]:
    """Yield constants of a `ClosedJaxpr` and of functions that it calls, with their variables."""
    yield from zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True)
    params = (value for one in every(jaxpr) for value in one.params.values())
    for inner in {id(one): one for value in params for one in _closed(value)}.values():
        yield from zip(inner.jaxpr.constvars, inner.consts, strict=True)


def _closed(value: Any) -> list[Any]:
    several = value if isinstance(value, tuple | list) else (value,)
    return [one for one in several if hasattr(one, "consts")]


READER = f"{__name__}:encoded"
"""Names :func:`encoded` to the process that has the jaxpr."""


def encoded(jaxpr: Any) -> bytes:
    """Return the :func:`structure` of a `ClosedJaxpr` as JSON."""
    text = json.dumps(asdict(structure(jaxpr)), ensure_ascii=False)
    return text.encode(errors="replace")  # half a surrogate pair: a file name that is not UTF-8


def called_kernels(jaxpr: Any) -> Iterator[tuple[str, Place | None]]:
    """Yield the kernels that a `ClosedJaxpr` calls, one that has no name by its function's."""
    for one in placed(jaxpr):
        params = one.equation.params
        if one.equation.primitive.name in jax_names.KERNEL_CALLS:
            name = str(params.get("name") or jax_names.NAMELESS)
            inner = [each for value in params.values() for each in nested(value)]
            info = getattr(inner[0], "debug_info", None) if inner else None
            function = str(getattr(info, "func_src_info", "")).partition(" at ")[0]
            place = one.path[-1] if one.path else None
            yield function if name == jax_names.NAMELESS and function else name, place


def _place(equation: Any) -> Place | None:
    path = made_at(equation.source_info.traceback) if equation is not None else ()
    return path[-1] if path else None


def _written(made: Sequence[Placed], leaves: int) -> Iterator[WrittenCause]:
    """Yield what is written into a program many times; each equation is of one cause at most."""
    least = LEAST_SHARE * len(made)
    seen: set[tuple[str, Place | None]] = set()
    for one in made:
        for row in _ROWS:
            place = one.path[-1] if one.path else None
            if one.equation.primitive.name == row.primitive and (row.kind, place) not in seen:
                count = row.counted(one.equation)
                if count >= row.least:
                    seen.add((row.kind, place))
                    keys = one.equation.params.get("num_keys", 0)
                    name = row.name(one.equation)
                    yield WrittenCause(row.kind, place, name, count=count, keys=keys)
    left = list(made)
    for finds in (_switches, _associative, _of_libraries):
        for cause, own in finds(left):
            if len(own) >= least:
                taken = {id(one) for one in own}
                left = [one for one in left if id(one) not in taken]
                cause.equations, cause.of = len(own), len(made)
                yield cause
    own = _of_leaves(left, leaves)
    if len(own) >= least:
        taken = {id(one) for one in own}
        left = [one for one in left if id(one) not in taken]
        yield WrittenCause("leaves", held(own), count=leaves, equations=len(own), of=len(made))
    for each in written_out(left, least, 0.5 * len(made)):
        kind = "loop" if each.in_loop else "repeated"
        cause = WrittenCause(kind, each.place, count=each.turns, is_same=each.same_shapes)
        cause.equations, cause.of = each.equations, len(made)
        yield cause


_Parts = Iterator[tuple[WrittenCause, list[Placed]]]
"""Causes, each with the equations that are of it."""


def _switches(made: Sequence[Placed]) -> _Parts:
    """Yield conditionals of many branches, the outermost, each with all that is in them."""
    of: dict[int, Placed] = {}
    inside: dict[tuple[Any, ...], list[Placed]] = defaultdict(list)
    for one in made:
        outer = of.get(id(one.around)) if one.around else None
        if outer is None and _branches(one) >= LEAST_TURNS:
            outer = one
        if outer is not None:
            of[id(one)] = outer
            inside[outer.path, _branches(outer)].append(one)
    for (path, branches), own in inside.items():
        [first, *_] = (of[id(one)] for one in own)
        signs = {_signs(each) for each in first.equation.params["branches"]}
        place = path[-1] if path else None
        yield WrittenCause("switch", place, count=branches, is_same=len(signs) == 1), own


def _branches(one: Placed) -> int:
    return len(one.equation.params.get("branches", ()))


def _signs(jaxpr: Any) -> tuple[Any, ...]:
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return tuple(
        (one.primitive.name, str(one.outvars[0].aval)) for one in inner.eqns if one.outvars
    )


def _associative(made: Sequence[Placed]) -> _Parts:
    """Yield associative scans by line, with all that they write out."""
    levels: dict[int, int] = {}
    inside: dict[Place | None, list[Placed]] = defaultdict(list)
    for one in made:
        own = _frames(one) if any(map(_is_associative, one.codes)) else []
        level = sum(code.co_qualname == jax_names.ASSOCIATIVE_LEVEL for code, _ in own)
        level = level or (levels.get(id(one.around), 0) if one.around else 0)
        if level:
            levels[id(one)] = level
            at = max((n for n, (code, _) in enumerate(own) if _is_associative(code)), default=0)
            users = sum(_frame(code).user for code, _ in own[:at])
            path = one.path[: len(one.path) - users]
            inside[path[-1] if path else None].append(one)
    for place, parts in inside.items():
        deepest = max(levels[id(one)] for one in parts)
        yield WrittenCause("associative scan", place, count=deepest), parts


def _is_associative(code: CodeType) -> bool:
    name, file = jax_names.ASSOCIATIVE
    return code.co_name == name and code.co_filename.endswith(file)


_SOLVERS = ("site-packages", "dist-packages")
_JAX = ("/jax/", "/jaxlib/")


class _Frame(NamedTuple):
    """Whose a frame is: the user's, or of a library that is given functions."""

    user: bool
    library: bool


_FRAMES: dict[int, tuple[_Frame, CodeType]] = {}


def _frame(code: CodeType) -> _Frame:
    entry = _FRAMES.get(id(code))
    if entry is None:  # it keeps the code, and so its identity
        file = code.co_filename
        of_jax = any(f"{site}{jax}" in file for site in _SOLVERS for jax in _JAX)
        library = any(site in file for site in _SOLVERS) and not of_jax
        library |= any(part in file for part in jax_names.SOLVERS)
        entry = _FRAMES[id(code)] = _Frame(is_users(file), library), code
    return entry[0]


def _frames(one: Placed) -> list[tuple[CodeType, int]]:
    """Return the frames of an equation and of those around it, the innermost first."""
    own = [*zip(one.codes, one.instructions, strict=True)]
    outer = _frames(one.around) if one.around else []
    return own if outer and own and own[-1][0] is outer[-1][0] else own + outer


def _of_libraries(made: Sequence[Placed]) -> _Parts:
    """Yield functions of the user's that a library traces again and again into one program.

    What a loop of the user's has written is not among them: that is another cause.
    """
    frames = {id(one): _frames(one) for one in made if not loops_around(one)}
    ways: dict[tuple[CodeType, tuple[Any, ...]], set[int]] = defaultdict(set)
    callers: dict[CodeType, Place] = {}
    for own in frames.values():
        at = _entry(own)
        if at:
            rest = own[at:]
            library = next(n for n, (code, _) in enumerate(rest) if _frame(code).library)
            users = tuple(one for one in rest[library:] if _frame(one[0]).user)
            function = own[at - 1][0]
            if users:  # other lines of the user's are other calls of the library
                ways[function, users].add(_way(rest))
                callers[function] = place_of(*rest[library])
    again = {function for (function, _), each in ways.items() if len(each) > 1}
    for function in again:
        inside: list[Placed] = []
        often: dict[int, Counter[Any]] = defaultdict(Counter)
        for one in made:
            own = frames.get(id(one), [])
            at = max((n for n, (code, _) in enumerate(own) if code is function), default=-1)
            if at >= 0:
                inside.append(one)
                often[_way(own[at + 1 :])][own[0], one.equation.primitive.name] += 1
        copies = sum(min(each.values()) for each in often.values())
        if copies >= LEAST_COPIES:
            place = Place(function.co_qualname, function.co_filename, function.co_firstlineno)
            yield WrittenCause("library", place, by=callers[function], count=copies), inside


def _entry(frames: Sequence[tuple[CodeType, int]]) -> int:
    """Return how many frames are of the function that a library was given; 0 for none."""
    entry = 0
    for n, (code, _) in enumerate(frames):
        if _frame(code).user:
            entry = n + 1
        elif entry and _frame(code).library:
            return entry
    return 0


def _way(frames: Sequence[tuple[CodeType, int]]) -> int:
    return hash(tuple((id(code), at) for code, at in frames))


def _of_leaves(made: Sequence[Placed], leaves: int) -> list[Placed]:
    """Return what is there about as often as the program has arguments, and in no loop."""
    if leaves < LEAST_LEAVES:
        return []
    often = Counter(one.at for one in made)
    return [one for one in made if often[one.at] >= leaves / 3 and not loops_around(one)]
