"""What code must not do if it is to run fewer times, and what it must not read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.patches.source import (
    LOOPS,
    SCOPES,
    ProgramFile,
    Refused,
    dotted,
    names_bound,
    reads,
    root,
)

_CALLS = frozenset(("print", "open", "input", "next", "exec", "eval", "setattr", "delattr", "iter"))
_MODULES = ("random.", "np.random.", "numpy.random.", "time.", "datetime.", "os.", "secrets.")
_RETURNING = frozenset(("pop", "popitem", "setdefault", "send"))
_METHODS = _RETURNING | frozenset(
    ("append", "extend", "insert", "update", "add", "remove", "discard", "clear", "write", "sort")
)
"""Methods that change their object; but for the first, where nothing takes what they return."""

_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def check(source: ProgramFile, moved: list[ast.AST], captured: set[str]) -> None:
    """Refuse code that does more than compute, or reads what changes between its runs.

    Args:
        source: The file.
        moved: What would run once instead of each time.
        captured: Names that become arguments, or are moved along.

    Functions of the same file that it calls are looked at as well. What other modules do is left to
    the comparison of results.
    """
    seen: set[str] = set()
    left = list(moved)
    while left:
        node = left.pop()
        _no_effects(node, source)
        for name in {one.id for one in reads(node)} - captured - seen:
            seen.add(name)
            left += _of_global(source, name)


def _no_effects(node: ast.AST, source: ProgramFile) -> None:
    for one in ast.walk(node):
        if isinstance(one, ast.Global | ast.Nonlocal):
            raise Refused("effects", one.names[0])
        if isinstance(one, ast.Yield | ast.YieldFrom | ast.Await):
            raise Refused("effects", "yield")
        if isinstance(one, ast.Call):
            name = dotted(one.func)
            if name in _CALLS or f"{name}.".startswith(_MODULES):
                raise Refused("effects", name)
        target = _changed(source, one)
        if target is not None and not _own(source, target, node):
            raise Refused("effects", dotted(target) or root(target))
        if isinstance(one, SCOPES) and any(isinstance(d, _MUTABLE) for d in one.args.defaults):
            raise Refused("effects", "a mutable default")


def _own(source: ProgramFile, node: ast.AST, moved: ast.AST) -> bool:
    """Whether what is changed was made in the moved code, so that nobody else sees it."""
    name = root(node)
    scopes = [one for one in [node, *source.outward(node)] if isinstance(one, SCOPES)]
    inside = set(ast.walk(moved))
    return any(
        isinstance(binder, ast.Name)
        for scope in scopes
        if scope in inside
        for binder in source.binders(scope, name)
    )


def _of_global(source: ProgramFile, name: str) -> Iterator[ast.AST]:
    """Refuse a name of the module that changes; yield the function that it is of this file."""
    binders = source.binders(source.tree, name)
    if all(isinstance(one, ast.alias) for one in binders):  # imports, of none as well
        return
    declared = any(
        isinstance(one, ast.Global) and name in one.names for one in ast.walk(source.tree)
    )
    in_loop = any(isinstance(one, LOOPS) for node in binders for one in source.outward(node))
    if len(binders) > 1 or declared or in_loop:
        raise Refused("changing-global", name)
    for one in ast.walk(source.tree):
        target = _changed(source, one)
        if target is not None and root(target) == name:
            raise Refused("changing-global", name)
    for binder in binders:
        if isinstance(binder, ast.FunctionDef):
            yield binder
        elif isinstance(binder, ast.Name) and (value := _assigned(source, binder)) is not None:
            made_by = dotted(value.func) if isinstance(value, ast.Call) else ""
            if made_by.startswith(_MODULES):
                raise Refused("effects", name)
            made = source.binders(source.tree, made_by) if made_by else []
            if any(isinstance(one, ast.ClassDef) for one in made) and _is_called(source, name):
                raise Refused("effects", name)


def _changed(source: ProgramFile, node: ast.AST) -> ast.expr | None:
    """Return what a node changes, as `a.b` of `a.b = 1` or `a.b()`; None if it changes nothing."""
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        is_statement = isinstance(source.parents.get(node), ast.Expr)
        if method in _RETURNING or (method in _METHODS and is_statement):
            return node.func
    return None


def _assigned(source: ProgramFile, name: ast.Name) -> ast.expr | None:
    statement = source.statement(name)
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _is_called(source: ProgramFile, name: str) -> bool:
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and root(one.func) == name
        for one in ast.walk(source.tree)
    )


def check_captured(source: ProgramFile, scope: ast.AST, name: str, end: int) -> None:
    """Refuse a captured variable that is bound or changed after the function that reads it."""
    for node in ast.walk(scope):
        rebound = name in names_bound(node) and not isinstance(node, ast.arg)
        target = _changed(source, node)
        changes = rebound or (target is not None and root(target) == name)
        if changes and source.span(node)[0] >= end:
            raise Refused("captured-changes", name)
