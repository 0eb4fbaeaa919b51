"""A program's file: its syntax, the scopes of its names, and changes of its text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Refused(Exception):
    """A remedy that is not written as a change.

    Attributes:
        reason: A code; its sentence is in `harness/output/profile_patch.py`.
        detail: What it is about: a name, an error.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class Edit(NamedTuple):
    """Text in place of what is between two offsets, in characters."""

    begin: int
    end: int
    text: str


class ProgramFile:
    """One file.

    Raises:
        Refused: it cannot be read as Python.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_bytes().decode()
            self.tree = ast.parse(self.text)
        except (OSError, ValueError, SyntaxError) as error:
            raise Refused("unreadable", str(error)) from None
        self.lines = self.text.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place as `ast` counts it: lines from 1, columns in UTF-8."""
        before = self.lines[line - 1].encode()[:column].decode() if line <= len(self.lines) else ""
        return self._starts[line - 1] + len(before)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where an expression or statement begins and ends, decorators included."""
        first = min([node, *getattr(node, "decorator_list", ())], key=lambda one: one.lineno)
        begin = self.offset(first.lineno, first.col_offset)
        if first is not node:
            begin = self.text.rindex("@", 0, begin + 1)
        return begin, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def text_of(self, node: ast.AST) -> str:
        """Return the text of an expression or statement."""
        begin, end = self.span(node)
        return self.text[begin:end]

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int]:
        """Return where the lines of a statement begin and end; it is refused if it shares one."""
        begin, end = self.span(statement)
        first = self.text.rfind("\n", 0, begin) + 1
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last + 1
        rest = self.text[end:last].strip()
        if self.text[first:begin].strip() or (rest and not rest.startswith("#")):
            raise Refused("shares-a-line", self.text[first:last].strip())
        return first, last

    def outward(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node is in, the innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that a node is in, or is."""
        return next(one for one in (node, *self.outward(node)) if isinstance(one, ast.stmt))

    def top(self, node: ast.AST) -> ast.stmt:
        """Return the statement of the module that a node is in."""
        *_, statement, _ = node, *self.outward(node)
        assert isinstance(statement, ast.stmt)
        return statement

    def functions(self, node: ast.AST) -> list[Scope]:
        """Return the functions that a node is in, the innermost first."""
        return [one for one in self.outward(node) if isinstance(one, SCOPES)]

    def is_repeated(self, node: ast.AST) -> bool:
        """Whether a node runs more than once in a process: in a function or loop."""
        return any(
            isinstance(one, (*SCOPES, *LOOPS, *COMPREHENSIONS)) for one in self.outward(node)
        )

    def loops_at_top(self, node: ast.AST) -> list[ast.AST]:
        """Return the loops of the module that a node is in, where it is in no function."""
        return (
            []
            if self.functions(node)
            else [one for one in self.outward(node) if isinstance(one, LOOPS)]
        )

    def binders(self, scope: ast.AST, name: str) -> list[ast.AST]:
        """Return what binds a name in a function or the module, in the order of the text."""
        return sorted(
            (node for node in own_nodes(scope) if name in names_bound(node)),
            key=lambda node: (node.lineno, node.col_offset),  # type: ignore[attr-defined]
        )

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text with changes, none of which may overlap another."""
        text, after = self.text, len(self.text)
        for edit in sorted(set(edits), reverse=True):
            if edit.end > after:
                raise Refused("overlaps")
            text, after = text[: edit.begin] + edit.text + text[edit.end :], edit.begin
        ast.parse(text)
        return text

    def unused_name(self, name: str) -> str:
        """Return `_name`, or with a number, so that nothing in the file has it."""
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        used |= {getattr(node, "name", "") for node in ast.walk(self.tree)}
        wanted, number = f"_{name.strip('_')}", 1
        while wanted in used:
            number += 1
            wanted = f"_{name.strip('_')}_{number}"
        return wanted

    def numpy(self) -> tuple[str, list[Edit]]:
        """Return what the file calls NumPy, and the change that imports it where nothing does."""
        imports = [one for one in self.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
        for node in imports:
            for alias in node.names:
                if isinstance(node, ast.Import) and alias.name == "numpy":
                    return alias.asname or "numpy", []
        if not imports:
            raise Refused("no-import", "numpy")
        end = self.whole_lines(imports[-1])[1]
        return "np", [Edit(end, end, "import numpy as np\n")]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or the module that are in no function of its own."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if isinstance(child, (*SCOPES, ast.ClassDef)):
            outside = [*getattr(child, "decorator_list", ()), *getattr(child, "bases", ())]
            arguments = getattr(child, "args", None)
            outside += (
                [*arguments.defaults, *filter(None, arguments.kw_defaults)] if arguments else []
            )
            for node in outside:
                yield node
                yield from own_nodes(node)
        elif isinstance(child, COMPREHENSIONS):
            yield from own_nodes(child.generators[0].iter)
        else:
            yield from own_nodes(child)


def names_bound(node: ast.AST) -> tuple[str, ...]:
    """Return the names that one node binds in the scope that it is in."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        return (node.id,)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0],)
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        return (node.name,)
    return ()


def bound_in(scope: ast.AST) -> set[str]:
    """Return the names of a function, its parameters included, or of the module."""
    shared = {
        name
        for node in own_nodes(scope)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    return {name for node in own_nodes(scope) for name in names_bound(node)} - shared


def reads(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that a node reads and does not bind in a function of its own."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Store):
            yield node
        return
    hidden: set[str] = set()
    if isinstance(node, SCOPES):
        hidden = bound_in(node)
        for outside in [*getattr(node, "decorator_list", ()), *_defaults(node)]:
            yield from reads(outside)
        body: Sequence[ast.AST] = node.body if isinstance(node.body, list) else [node.body]
    elif isinstance(node, COMPREHENSIONS):
        hidden = {
            name
            for generator in node.generators
            for one in ast.walk(generator.target)
            for name in names_bound(one)
        }
        body = list(ast.iter_child_nodes(node))
    else:
        body = list(ast.iter_child_nodes(node))
    for child in body:
        yield from (one for one in reads(child) if one.id not in hidden)


def _defaults(function: Scope) -> list[ast.expr]:
    return [*function.args.defaults, *filter(None, function.args.kw_defaults)]


def dotted(node: ast.AST) -> str:
    """Return `jax.jit` of such an expression; empty of others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def root(node: ast.AST) -> str:
    """Return the name that an attribute, an entry or a call is of; empty if it is of none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
