"""What code reads of the functions and loops around it: what becomes arguments, and moves along."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from harness.patches import effects
from harness.patches.source import ProgramFile, Refused, bound_in, reads


@dataclass
class Surroundings:
    """What code reads of the functions and loops around it.

    Attributes:
        values: Parameters, each with the expression that gives it its value.
        helpers: Functions, which are moved along, in the order of the text.
        replaced: Expressions of which a parameter takes the place: `self.gain`.
    """

    values: dict[str, str] = field(default_factory=dict)
    helpers: list[ast.stmt] = field(default_factory=list)
    replaced: dict[ast.AST, str] = field(default_factory=dict)


def captured(source: ProgramFile, node: ast.AST) -> Surroundings:
    """Return what a function or expression captures.

    Raises:
        Refused: if a variable may change afterwards, or an object that is no array would be an
            argument.
    """
    around = Surroundings()
    moved: list[ast.AST] = [node]
    seen: set[str] = set()
    for one in moved:  # grows by the helpers
        for name in reads(one):
            _capture(source, node, name, around, moved, seen)
    around.helpers.sort(key=lambda one: one.lineno)
    effects.check(source, moved, seen)
    return around


def _capture(
    source: ProgramFile,
    node: ast.AST,
    name: ast.Name,
    around: Surroundings,
    moved: list[ast.AST],
    seen: set[str],
) -> None:
    scope = scope_of(source, node, name.id)
    if scope is None:
        return
    if method_object(source, name) is scope:
        parent = source.parents[name]
        called = isinstance(source.parents.get(parent), ast.Call) and parent is getattr(
            source.parents[parent], "func", None
        )
        if not isinstance(parent, ast.Attribute) or called:
            raise Refused("whole-object", name.id)
        seen.add(name.id)
        around.replaced[parent] = parent.attr
        around.values[parent.attr] = f"{name.id}.{parent.attr}"
        return
    if name.id in seen:
        return
    seen.add(name.id)
    binders = source.binders(scope, name.id)
    if len(binders) == 1 and (helper := _helper(source, binders[0])) is not None:
        around.helpers.append(helper)
        moved.append(helper)
        return
    effects.check_captured(source, scope, name.id, source.span(node)[1])
    around.values[name.id] = name.id


def scope_of(source: ProgramFile, node: ast.AST, name: str) -> ast.AST | None:
    """Return the function, or the module by a loop, that a name is captured from; else None."""
    for scope in source.functions(node):
        if name in bound_in(scope):
            return scope
    for loop in source.loops_at_top(node):
        if any(
            name in (getattr(one, "id", ""), getattr(one, "name", "")) and _binds(one)
            for one in ast.walk(loop)
        ):
            return source.tree
    return None


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) or isinstance(getattr(node, "ctx", None), ast.Store)


def _helper(source: ProgramFile, binder: ast.AST) -> ast.stmt | None:
    if isinstance(binder, ast.FunctionDef) and not binder.decorator_list:
        return binder
    statement = source.statement(binder)
    made = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda)
    return statement if made else None


def method_object(source: ProgramFile, name: ast.Name) -> ast.AST | None:
    """Return the method whose own object a name is: the first parameter."""
    for scope in source.functions(name):
        if name.id in bound_in(scope):
            arguments = scope.args.posonlyargs + scope.args.args
            is_method = isinstance(source.parents.get(scope), ast.ClassDef)
            return scope if is_method and arguments and arguments[0].arg == name.id else None
    return None
