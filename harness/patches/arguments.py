"""Static arguments become dynamic, and what is weakly typed gets a dtype where it is made."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from harness.jaxhooks.events import Frame, Function
from harness.patches.hoist import JITS, PARTIALS
from harness.patches.source import Edit, ProgramFile, Refused, dotted

_MADE = frozenset(
    ("full", "full_like", "zeros_like", "ones_like", "array", "asarray", "linspace", "arange")
)


def definition(source: ProgramFile, function: Function) -> ast.FunctionDef | None:
    """Return a function's definition; None of one that is not in the file, or a lambda."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.name:
            lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
            if function.line in lines:
                return node
    return None


# --- static arguments -----------------------------------------------------------------------------


def made_dynamic(source: ProgramFile, function: Function, names: Sequence[str]) -> list[Edit]:
    """Return the changes that make static arguments dynamic.

    Raises:
        Refused: if the file does not say in so many words which arguments are static.
    """
    made = definition(source, function)
    if made is None:
        raise Refused("no-place", function.name)
    parameters = [one.arg for one in made.args.posonlyargs + made.args.args]
    places = [one for one in made.decorator_list if isinstance(one, ast.Call)]
    places += [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and dotted(node.func) in JITS
        and node.args
        and dotted(node.args[0]).split(".")[-1] == function.name
    ]
    edits = []
    for call in places:
        for keyword in call.keywords:
            if keyword.arg in ("static_argnames", "static_argnums"):
                edits += _without(source, call, keyword, names, parameters)
    if not edits:
        raise Refused("no-place", ", ".join(names))
    return edits


def _without(
    source: ProgramFile,
    call: ast.Call,
    keyword: ast.keyword,
    names: Sequence[str],
    parameters: Sequence[str],
) -> list[Edit]:
    try:
        value = ast.literal_eval(keyword.value)
    except ValueError:
        raise Refused("computed", keyword.arg or "") from None
    several = list(value) if isinstance(value, tuple | list) else [value]
    numbers = {parameters.index(name) for name in names if name in parameters}
    numbers |= {number - len(parameters) for number in numbers}
    left = [one for one in several if one not in names and one not in numbers]
    if left == several:
        return []
    if left:
        text = repr(left[0]) if len(left) == 1 else repr(type(value)(left))
        return [Edit(*source.span(keyword.value), text.replace("'", '"'))]
    whole = [*call.args, *call.keywords]
    if len(whole) == 1 or (len(whole) == 2 and dotted(call.func) in PARTIALS):
        only = call.args[0] if call.args and dotted(call.func) in PARTIALS else call.func
        return [Edit(*source.span(call), source.text_of(only))]
    number = whole.index(keyword)
    if number:
        return [Edit(source.span(whole[number - 1])[1], source.span(keyword)[1], "")]
    return [Edit(source.span(keyword)[0], source.span(whole[1])[0], "")]


# --- dtypes ---------------------------------------------------------------------------------------


def typed(
    source: ProgramFile,
    function: Function,
    parameters: Sequence[str],
    argument: str,
    dtype: str,
    site: Frame,
) -> list[Edit]:
    """Return the changes that give one leaf of an argument a dtype where it is made.

    Args:
        source: the file of the call.
        function: what is called.
        parameters: the function's, in order.
        argument: `state.time`, `carry[1]`.
        dtype: as NumPy names it.
        site: the line of the call.

    Raises:
        Refused: if it is made somewhere else than in the function of the call.
    """
    if dtype not in ("float32", "float64", "int32", "int64", "uint32", "bool", "complex64"):
        raise Refused("other-dtype", dtype)
    leaf = ast.parse(argument, mode="eval").body
    path: list[ast.expr] = []
    while isinstance(leaf, ast.Attribute | ast.Subscript):
        path.insert(0, leaf)
        leaf = leaf.value
    calls = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and node.lineno <= site.line <= (node.end_lineno or 0)
        and dotted(node.func).split(".")[-1].strip("_") == function.name.strip("_")
    ]
    if len(calls) != 1 or not isinstance(leaf, ast.Name):
        raise Refused("no-place", argument)
    (call,) = calls
    given = next((one.value for one in call.keywords if one.arg == leaf.id), None)
    if given is None and leaf.id in parameters:
        number = parameters.index(leaf.id)
        number -= isinstance(call.func, ast.Attribute) and parameters[0] == "self"
        given = call.args[number] if number < len(call.args) else None
    if given is None:
        raise Refused("no-place", argument)
    place = _made(source, given, path, call)
    return _with_dtype(source, place, dtype)


def _made(source: ProgramFile, value: ast.expr, path: list[ast.expr], call: ast.AST) -> ast.expr:
    """Follow a value to the expression that makes what is at a path in it."""
    if isinstance(value, ast.Name):
        return _made(source, _assigned(source, value, call), path, call)
    if not path:
        return value
    step, rest = path[0], path[1:]
    inner: ast.expr | None = None
    if isinstance(step, ast.Subscript) and isinstance(step.slice, ast.Constant):
        key = step.slice.value
        if isinstance(value, ast.Tuple | ast.List) and isinstance(key, int):
            inner = value.elts[key] if key < len(value.elts) else None
        elif isinstance(value, ast.Dict):
            for one, each in zip(value.keys, value.values, strict=True):
                if isinstance(one, ast.Constant) and one.value == key:
                    inner = each
        elif isinstance(value, ast.Call) and dotted(value.func) == "dict":
            inner = next((one.value for one in value.keywords if one.arg == key), None)
    elif isinstance(step, ast.Attribute) and isinstance(value, ast.Call):
        inner = next((one.value for one in value.keywords if one.arg == step.attr), None)
        fields = _fields(source, dotted(value.func))
        if inner is None and step.attr in fields[: len(value.args)]:
            inner = value.args[fields.index(step.attr)]
    if inner is None:
        raise Refused("made-elsewhere", source.text_of(value).splitlines()[0])
    return _made(source, inner, rest, call)


def _assigned(source: ProgramFile, name: ast.Name, call: ast.AST) -> ast.expr:
    """Return what a variable was last given before a call, which is not the call's own result."""
    scopes = source.functions(name)
    scope: ast.AST = scopes[0] if scopes else source.tree
    values = []
    for binder in source.binders(scope, name.id):
        statement = source.statement(binder)
        if binder.lineno >= call.lineno or any(one is call for one in ast.walk(statement)):  # type: ignore[attr-defined]
            continue
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            raise Refused("made-elsewhere", name.id)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        value = statement.value
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                raise Refused("made-elsewhere", name.id)
            value = value.elts[target.elts.index(binder)]  # type: ignore[arg-type]
        values.append(value)
    if not values:
        raise Refused("made-elsewhere", name.id)
    return values[-1]


def _fields(source: ProgramFile, name: str) -> list[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return [
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            ]
    return []


def _with_dtype(source: ProgramFile, value: ast.expr, dtype: str) -> list[Edit]:
    np, edits = source.numpy()  # a scalar of jax.numpy's would be a program
    wanted = f"{np}.{'bool_' if dtype == 'bool' else dtype}"
    begin, end = source.span(value)
    if isinstance(value, ast.Call):
        name = dotted(value.func).split(".")[-1]
        if name in _MADE and not any(one.arg == "dtype" for one in value.keywords):
            before = source.text[: end - 1].rstrip()
            comma = " " if before.endswith(",") else ", "
            return [*edits, Edit(len(before), len(before), f"{comma}dtype={wanted}")]
        if name.startswith(("float", "int", "uint", "bool", "complex")) and name != "float":
            raise Refused("has-a-dtype", source.text_of(value))
    return [*edits, Edit(begin, end, f"{wanted}({source.text_of(value)})")]


# --- loops and sizes ------------------------------------------------------------------------------

_ITERATES = frozenset(("enumerate", "zip", "reversed", "list", "tuple", "sum", "max", "min", "map"))
_SIZED = re.compile(
    "unique(_values)?|(flat)?nonzero|argwhere|where|(union|intersect)1d|set(diff|xor)1d|compress|extract"
)


def iterated_by_numpy(source: ProgramFile, lines: set[int]) -> list[Edit]:
    """Return the changes that let Python loop over NumPy arrays on these lines, or unpack them."""
    values = [
        value
        for node in ast.walk(source.tree)
        if getattr(node, "lineno", getattr(getattr(node, "iter", None), "lineno", 0)) in lines
        for value in _iterated_by(node)
    ]
    # What one line has no longer built, another one would build.
    names = {value.id for value in values if isinstance(value, ast.Name)}
    for node in ast.walk(source.tree):
        values += [one for one in _iterated_by(node) if getattr(one, "id", "") in names]
    return _numpy(source, list(dict.fromkeys(values)))


def _iterated_by(node: ast.AST) -> list[ast.expr]:
    """Return what a loop, an unpacking or a call such as `map` takes the parts of."""
    if isinstance(node, ast.For | ast.comprehension):
        return _iterated(node.iter)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        return [] if isinstance(node.value, ast.Tuple) else [node.value]
    if isinstance(node, ast.Call) and dotted(node.func) in _ITERATES - {"enumerate"}:
        return _iterated(node)
    return []


def _iterated(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.Call) and (name := dotted(value.func)) in _ITERATES:
        arguments = value.args[1:] if name == "map" else value.args
        return [inner for one in arguments for inner in _iterated(one)]
    if isinstance(value, ast.Call) and dotted(value.func) == "range":
        return []
    if isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.GeneratorExp | ast.ListComp):
        return []
    return [value]


def sized_by_numpy(source: ProgramFile, lines: set[int]) -> list[Edit]:
    """Return the changes that let NumPy do what has a result of a size that depends on values."""
    edits, values = [], []
    for node in ast.walk(source.tree):
        if getattr(node, "lineno", 0) not in lines:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            jnp = dotted(node.func.value) in ("jnp", "jax.numpy")
            one_argument = node.func.attr != "where" or len(node.args) == 1
            if jnp and one_argument and _SIZED.fullmatch(node.func.attr):
                np, more = source.numpy()
                edits += [*more, Edit(*source.span(node.func.value), np)]
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Compare):
            values += [node.value, node.slice]
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            values.append(node.value)
    return [*edits, *(_numpy(source, values) if values or not edits else [])]


def _numpy(source: ProgramFile, values: list[ast.expr]) -> list[Edit]:
    if not values:
        raise Refused("no-place")
    np, edits = source.numpy()
    for value in values:
        begin, end = source.span(value)
        edits += [Edit(begin, begin, f"{np}.asarray("), Edit(end, end, ")")]
    return edits
