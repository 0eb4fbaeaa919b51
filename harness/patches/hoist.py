"""A function that is jitted again and again is jitted once; what it captures becomes arguments."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

from harness.jaxhooks.events import Frame, Function
from harness.patches import effects
from harness.patches.source import (
    LOOPS,
    SCOPES,
    Edit,
    ProgramFile,
    Refused,
    bound_in,
    dotted,
    reads,
)
from harness.patches.surroundings import Surroundings, captured, method_object, scope_of

JITS = frozenset(
    ("jax.jit", "jit", "eqx.filter_jit", "equinox.filter_jit", "filter_jit", "nnx.jit")
)
PARTIALS = frozenset(("partial", "functools.partial"))
LAMBDA = "<lambda>"


def jitted_once(source: ProgramFile, function: Function, site: Frame) -> tuple[list[Edit], str]:
    """Return the changes that let a function be jitted once, and the name of what is jitted then.

    Args:
        source: the file in which it is jitted.
        function: what was built several times.
        site: the line that called it.

    Raises:
        Refused: where that is not written.
    """
    place = _place(source, function, site)
    if isinstance(place, ast.FunctionDef):
        return _decorated(source, place)
    return _expression(source, place, function)


# --- where it is jitted ---------------------------------------------------------------------------


def _place(source: ProgramFile, function: Function, site: Frame) -> ast.FunctionDef | ast.Call:
    places = [
        node
        for node in ast.walk(source.tree)
        if source.is_repeated(node) and _jits(source, node, function)
    ]
    if len(places) > 1:
        around = [node for node in places if _holds(source, node, site.line)]
        places = around or places
    if len(places) != 1:
        raise Refused("several-places" if places else "no-place", function.name)
    (place,) = places
    assert isinstance(place, ast.FunctionDef | ast.Call)
    return place


def _jits(source: ProgramFile, node: ast.AST, function: Function) -> bool:
    if isinstance(node, ast.FunctionDef):
        lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
        is_it = node.name == function.name and function.line in lines
        return is_it and any(_is_jit(one) for one in node.decorator_list)
    if not (isinstance(node, ast.Call) and dotted(node.func) in JITS and node.args):
        return False
    if any(node in ast.walk(one) for up in source.outward(node) for one in _decorators(up)):
        return False
    for one in ast.walk(node.args[0]):
        if function.name == LAMBDA:
            if isinstance(one, ast.Lambda) and one.lineno == function.line:
                return True
        elif function.name in (getattr(one, "id", ""), getattr(one, "attr", "")):
            return True
    return False


def _decorators(node: ast.AST) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def _is_jit(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        if dotted(decorator.func) in PARTIALS and decorator.args:
            return dotted(decorator.args[0]) in JITS
        return dotted(decorator.func) in JITS
    return dotted(decorator) in JITS


def _holds(source: ProgramFile, node: ast.AST, line: int) -> bool:
    around = next((one for one in source.outward(node) if isinstance(one, (*SCOPES, *LOOPS))), None)
    return around is not None and around.lineno <= line <= (around.end_lineno or 0)


def _options(source: ProgramFile, call: ast.Call) -> None:
    """Refuse options that are made where the function is, or that give arguments away."""
    scopes = source.functions(call)
    for keyword in call.keywords:
        if (keyword.arg or "").startswith("donate"):
            raise Refused("donation", keyword.arg or "")
        local = {one.id for one in reads(keyword.value)} & set().union(*map(bound_in, scopes))
        if local:
            raise Refused("options", keyword.arg or "")


# --- what is written ------------------------------------------------------------------------------


def _decorated(source: ProgramFile, definition: ast.FunctionDef) -> tuple[list[Edit], str]:
    if len(definition.decorator_list) > 1:
        raise Refused("decorators", definition.name)
    (decorator,) = definition.decorator_list
    if isinstance(decorator, ast.Call):
        _options(source, decorator)
    return _moved_definition(source, definition, definition, "", [])


def _moved_definition(
    source: ProgramFile,
    definition: ast.FunctionDef,
    uses_of: ast.AST,
    after: str,
    removed: list[ast.stmt],
) -> tuple[list[Edit], str]:
    """Move a function to the module, with its decorator, and let what used it use that."""
    outside = captured(source, definition)
    _defaults(source, definition)
    name = source.unused_name(definition.name)
    if any(one.id == definition.name for one in reads(definition)):
        raise Refused("recursive", definition.name)
    text = _with_parameters(source, definition, outside, name)
    edits = _insertion(
        source, definition, [definition, *outside.helpers], text + after.format(name)
    )
    edits += _removals(source, [definition, *removed], outside.helpers)
    edits += _uses(source, definition.name, uses_of, name, outside)
    return edits, name


def _defaults(source: ProgramFile, function: ast.FunctionDef | ast.Lambda) -> None:
    arguments = function.args
    for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
        if any(scope_of(source, function, one.id) is not None for one in reads(default)):
            raise Refused("default", source.text_of(default))


def _expression(source: ProgramFile, call: ast.Call, function: Function) -> tuple[list[Edit], str]:
    _options(source, call)
    made, statement = call.args[0], source.statement(call)
    target = _assigned(call, statement)
    scopes = source.functions(call)
    if isinstance(made, ast.Name):
        scope = scope_of(source, call, made.id)
        binders = [one for one in source.binders(scope, made.id)] if scope else []
        local = next((one for one in binders if isinstance(one, ast.FunctionDef)), None)
        if local is not None and target == made.id and not local.decorator_list:
            return _rebound(source, call, local, statement)
    outside = captured_by_method(source, made) or captured(source, made)
    name = source.unused_name(
        target or (scopes[0].name if isinstance(scopes[0], ast.FunctionDef) else "function")
        if scopes and (function.name == LAMBDA or target)
        else target or ("function" if function.name == LAMBDA else function.name)
    )
    jit, options = source.text_of(call.func), _options_text(source, call)
    jitted = name
    if isinstance(outside, _Method):
        text = _with_parameters(source, outside.definition, outside.captured, name, outside.own)
        text = f"@{jit}\n{text}" if not options else f"{text}\n\n\n{name} = {jit}({name}{options})"
        outside = outside.captured
    elif not outside.values and not outside.helpers:
        text = f"{name} = {source.text_of(call)}"
        jitted = function.name if function.name != LAMBDA else name
        if isinstance(made, ast.Lambda):
            text = _from_lambda(source, made, outside, name, jit, options)
            jitted = name
    elif isinstance(made, ast.Lambda):
        text = _from_lambda(source, made, outside, name, jit, options)
    elif direct := _direct_partial(made, outside):
        text = f"{name} = {jit}({source.text_of(direct.args[0])}{options})"
        jitted = function.name
        edits = _insertion(source, call, [made], text)
        return [*edits, *_given(source, call, direct, name)], jitted
    elif options:
        raise Refused("options", options.lstrip(", "))
    else:
        text = _around(source, made, outside, name, jit)
    edits = _insertion(source, call, [made, *outside.helpers], text)
    edits += _removals(source, [], outside.helpers)
    if target and outside.values:
        edits += _removals(source, [statement], [])
        edits += _uses(source, target, statement, name, outside)
    else:
        begin, end = source.span(call)
        edits.append(Edit(begin, end, name))
        if outside.values:
            parent = source.parents[call]
            if not (isinstance(parent, ast.Call) and parent.func is call):
                raise Refused("escapes", function.name)
            edits.append(_more_arguments(source, parent, outside))
    return edits, jitted


def _assigned(call: ast.Call, statement: ast.stmt) -> str:
    """Return the one variable that an expression is assigned to; empty if there is none."""
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and len(statement.targets) == 1
    ):
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def _rebound(
    source: ProgramFile, call: ast.Call, local: ast.FunctionDef, statement: ast.stmt
) -> tuple[list[Edit], str]:
    """Move `def step` that `step = jax.jit(step)` follows."""
    jit, options = source.text_of(call.func), _options_text(source, call)
    edits, name = _moved_definition(
        source, local, statement, f"\n\n\n{{0}} = {jit}({{0}}{options})", [statement]
    )
    return edits, name


@dataclass
class _Method:
    definition: ast.FunctionDef
    captured: Surroundings
    own: str


def captured_by_method(source: ProgramFile, made: ast.expr) -> _Method | None:
    """Return the method that is jitted by `jax.jit(self.method)`, and what it reads of `self`."""
    if not (isinstance(made, ast.Attribute) and isinstance(made.value, ast.Name)):
        return None
    scope = method_object(source, made.value)
    owner = source.parents.get(scope) if scope is not None else None
    if not isinstance(owner, ast.ClassDef):
        return None
    methods = [
        one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == made.attr
    ]
    if len(methods) != 1 or methods[0].decorator_list:
        raise Refused("whole-object", source.text_of(made))
    (method,) = methods
    own = method.args.args[0].arg
    outside = Surroundings()
    for statement in method.body:
        for name in reads(statement):
            if name.id != own:
                continue
            parent = source.parents[name]
            above = source.parents.get(parent)
            if not isinstance(parent, ast.Attribute) or (
                isinstance(above, ast.Call) and above.func is parent
            ):
                raise Refused("whole-object", own)
            outside.replaced[parent] = parent.attr
            outside.values[parent.attr] = f"{made.value.id}.{parent.attr}"
    effects.check(source, [method], {own})
    return _Method(method, outside, own)


def _options_text(source: ProgramFile, call: ast.Call) -> str:
    more = [*call.args[1:], *(one.value for one in call.keywords)]
    if not more:
        return ""
    begin = source.span(call.args[0])[1]
    return source.text[begin : source.span(call)[1] - 1].rstrip().rstrip(",")


def _direct_partial(made: ast.expr, outside: Surroundings) -> ast.Call | None:
    """Return `partial(f, ...)` where `f` itself can be jitted, and given the rest by each call."""
    if not (isinstance(made, ast.Call) and dotted(made.func) in PARTIALS and made.args):
        return None
    stars = [one for one in made.args if isinstance(one, ast.Starred)]
    named = all(one.arg for one in made.keywords)
    function = made.args[0]
    is_global = isinstance(function, ast.Name) and function.id not in outside.values
    return made if named and not stars and is_global and not outside.helpers else None


def _given(source: ProgramFile, call: ast.Call, partial: ast.Call, name: str) -> list[Edit]:
    """Let each call of the jitted function give what the partial has bound."""
    parent = source.parents[call]
    if not (isinstance(parent, ast.Call) and parent.func is call):
        raise Refused("escapes", name)
    first = [source.text_of(one) for one in partial.args[1:]]
    last = [source.text_of(one) for one in partial.keywords]
    own = [source.text_of(one) for one in [*parent.args, *parent.keywords]]
    positions = [*first, *(own[: len(parent.args)])]
    begin, end = source.span(parent)
    given = ", ".join([*positions, *last, *own[len(parent.args) :]])
    return [Edit(begin, end, f"{name}({given})")]


def _from_lambda(
    source: ProgramFile, made: ast.Lambda, outside: Surroundings, name: str, jit: str, options: str
) -> str:
    _defaults(source, made)
    begin = source.span(made)[0]
    body_begin, body_end = source.span(made.body)
    colon = source.text.rindex(":", begin, body_begin)
    parameters = source.text[begin + len("lambda") : colon].strip()
    body = _replaced(source, body_begin, body_end, outside)
    if source.text[colon + 1 : body_begin].strip() or "\n" in body:
        body = f"({body})"
    inner = _helper_blocks(source, outside, "    ")
    parameters = _more_parameters(parameters, made.args, outside)
    text = f"def {name}({parameters}):\n{inner}    return {body}"
    return f"{text}\n\n\n{name} = {jit}({name}{options})" if options else f"@{jit}\n{text}"


def _around(source: ProgramFile, made: ast.expr, outside: Surroundings, name: str, jit: str) -> str:
    begin, end = source.span(made)
    parameters = ", ".join(["*args", *outside.values])
    expression = _replaced(source, begin, end, outside)
    inner = _helper_blocks(source, outside, "    ")
    return f"@{jit}\ndef {name}({parameters}):\n{inner}    return {expression}(*args)"


def _replaced(source: ProgramFile, begin: int, end: int, outside: Surroundings) -> str:
    """Return a piece of the text with parameters in place of `self.gain`."""
    text = source.text[begin:end]
    for node, parameter in sorted(
        outside.replaced.items(), key=lambda one: -source.span(one[0])[0]
    ):
        first, last = source.span(node)
        if begin <= first and last <= end:
            text = text[: first - begin] + parameter + text[last - begin :]
    return text


def _helper_blocks(source: ProgramFile, outside: Surroundings, indent: str) -> str:
    blocks = []
    for helper in outside.helpers:
        begin, end = source.whole_lines(helper)
        block = textwrap.dedent(_replaced(source, begin, end, outside)).rstrip("\n")
        blocks.append(textwrap.indent(block, indent) + "\n\n")
    return "".join(blocks)


def _with_parameters(
    source: ProgramFile,
    function: ast.FunctionDef,
    outside: Surroundings,
    name: str,
    without: str = "",
) -> str:
    """Return a function's text at the left margin, with another name and more parameters."""
    begin, end = source.whole_lines(function)
    head = source.offset(function.lineno, function.col_offset)
    opening = source.text.index("(", head)
    first = function.body[0]
    body_begin = source.span(first)[0]
    colon = source.text.rindex(":", opening, body_begin)
    closing = _closing(source, function, opening)
    parameters = source.text[opening + 1 : closing].strip().rstrip(",")
    if without:
        parameters = parameters.partition(without)[2].lstrip(" ,")
    parameters = _more_parameters(parameters, function.args, outside)
    line_begin = source.text.rfind("\n", 0, body_begin) + 1
    if line_begin < colon:
        raise Refused("shares-a-line", source.lines[function.lineno - 1].strip())
    indent = source.text[line_begin:body_begin]
    inner = _helper_blocks(source, outside, indent)
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    after = source.whole_lines(first)[1] if is_text and len(function.body) > 1 else line_begin
    pieces = (
        source.text[begin:head],
        f"def {name}({parameters})",
        source.text[closing + 1 : line_begin],
        source.text[line_begin:after],
        inner,
        _replaced(source, after, end, outside),
    )
    return textwrap.dedent("".join(pieces)).rstrip("\n")


def _closing(source: ProgramFile, function: ast.FunctionDef, opening: int) -> int:
    arguments = function.args
    nodes = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *arguments.defaults,
        *filter(None, [*arguments.kw_defaults, arguments.vararg, arguments.kwarg]),
    ]
    after = max([opening + 1, *(source.span(one)[1] for one in nodes)])
    return source.text.index(")", after)


def _more_parameters(parameters: str, arguments: ast.arguments, outside: Surroundings) -> str:
    if not outside.values:
        return parameters
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if arguments.kwarg or {one.arg for one in every} & outside.values.keys():
        raise Refused("parameters", parameters)
    star = ["*"] if arguments.defaults and not (arguments.vararg or arguments.kwonlyargs) else []
    return ", ".join([*filter(None, [parameters]), *star, *outside.values])


def _insertion(source: ProgramFile, place: ast.AST, moved: list[ast.AST], text: str) -> list[Edit]:
    """Put a text before what it was in, or after the last thing of the module that it reads."""
    top = source.top(place)
    begin = source.whole_lines(top)[0]
    while begin and source.text[:begin].splitlines()[-1].lstrip().startswith("#"):
        begin = source.text.rfind("\n", 0, begin - 1) + 1
    names = {one.id for node in moved for one in reads(node)}
    names -= set().union(*map(bound_in, source.functions(place)), set())
    binders = [one for name in names for one in source.binders(source.tree, name)]
    last = max(
        (source.whole_lines(source.top(one)) for one in binders if source.top(one) is not top),
        default=(0, 0),
    )
    if last[0] > begin:
        return [Edit(last[1], last[1], f"\n\n{text}\n")]
    return [Edit(begin, begin, f"{text}\n\n\n")]


def _removals(source: ProgramFile, always: list[ast.stmt], helpers: list[ast.stmt]) -> list[Edit]:
    edits = []
    moved = {id(one) for statement in [*always, *helpers] for one in ast.walk(statement)}
    for statement in [*always, *helpers]:
        if statement in helpers and _still_used(source, statement, moved):
            continue
        body = getattr(source.parents[statement], "body", [])
        if not [one for one in body if one is not statement and id(one) not in moved]:
            raise Refused("empty-body")
        begin, end = source.whole_lines(statement)
        while source.text[:begin].endswith("\n\n"):  # with the blank lines before it
            begin -= 1
        edits.append(Edit(begin, end, ""))
    return edits


def _still_used(source: ProgramFile, helper: ast.stmt, moved: set[int]) -> bool:
    target = helper.targets[0] if isinstance(helper, ast.Assign) else helper
    name = getattr(target, "name", getattr(target, "id", ""))
    scopes = source.functions(helper)
    scope: ast.AST = scopes[0] if scopes else source.tree
    return any(
        isinstance(one, ast.Name) and one.id == name and id(one) not in moved
        for one in ast.walk(scope)
        if not isinstance(getattr(one, "ctx", None), ast.Store)
    )


def _uses(
    source: ProgramFile, old: str, statement: ast.AST, new: str, outside: Surroundings
) -> list[Edit]:
    """Rename what uses a function that was moved, and let its calls give what it captured."""
    scopes = source.functions(statement)
    scope: ast.AST = scopes[0] if scopes else source.tree
    inside = {id(one) for one in ast.walk(statement)}
    names = [
        one
        for one in ast.walk(scope)
        if isinstance(one, ast.Name) and one.id == old and id(one) not in inside
    ]
    if any(isinstance(one.ctx, ast.Store) for one in names):
        raise Refused("rebound", old)
    edits = []
    for name in names:
        begin, end = source.span(name)
        edits.append(Edit(begin, end, new))
        if outside.values:
            parent = source.parents[name]
            if not (isinstance(parent, ast.Call) and parent.func is name):
                raise Refused("escapes", old)
            edits.append(_more_arguments(source, parent, outside))
    return edits


def _more_arguments(source: ProgramFile, call: ast.Call, outside: Surroundings) -> Edit:
    end = source.span(call)[1] - 1
    before = source.text[:end].rstrip()
    given = ", ".join(f"{name}={value}" for name, value in outside.values.items())
    comma = "" if before.endswith(("(", ",")) else ", "
    comma = " " if before.endswith(",") else comma
    return Edit(len(before), len(before), f"{comma}{given}")
