"""Which version of a workload was measured: a digest of its source and of the method."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import re
import sys
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

METHOD_VERSION = 2
"""Raised whenever numbers are taken differently, so that old and new ones are never compared."""

NO_SOURCE = (OSError, TypeError, SyntaxError, tokenize.TokenError)
"""What `inspect` raises for a class whose text is not to be had: made by `type`, typed at a prompt,
or read from standard input (Python 3.13 then looks for it in another file)."""

_NOT_THE_USERS = ("harness.workload.workload", "abc", "builtins", "typing")
"""Modules whose classes every workload derives from."""

HOOKS = ("baseline", "fused_cpu", "fused_gpu", "reference")
"""Members of a workload that only comparisons with a baseline call."""


def version_of(workload: type) -> str:
    """Return a version that changes with the workload's source or with how numbers are taken.

    A new baseline does not change it: what JAX builds is the same.
    """
    text = source_of(workload)
    for hook in _hooks(workload):
        text = re.sub(rf"\n\s*{re.escape(hook)}", "", text)
    return _version(text)


def comparison_version_of(workload: type) -> str:
    """Return a version that changes with a workload's baselines as well."""
    return _version("\n".join([source_of(workload), *_hooks(workload)]))


def _version(text: str) -> str:
    digest = hashlib.sha256(f"method {METHOD_VERSION}\n{text}".encode()).hexdigest()
    return f"{METHOD_VERSION}.{digest[:12]}"


def _hooks(workload: type) -> list[str]:
    """Return the text of the hooks as it stands in the text of their classes."""
    members = [vars(cls).get(name) for cls in workload.__mro__ for name in HOOKS]
    functions = [getattr(member, "__func__", member) for member in members]
    sources = [_source(function) for function in functions if function is not None]
    return [textwrap.indent(source, "    ").lstrip() for source in sources if source]


def source_of(workload: type) -> str:
    """Return the source that defines a workload: its classes, and a `function` beside them.

    A function of another module is the code under test: a change of it is what is to be measured,
    and does not make another workload.
    """
    pieces: list[str] = []
    for cls in workload.__mro__:
        if cls.__module__ not in _NOT_THE_USERS:
            pieces.append(_source_of_class(cls) or _source_of_members(cls))
    function = getattr(workload, "function", None)
    own = workload.__module__ in (*_NOT_THE_USERS, getattr(function, "__module__", ""))
    text = _source(function) if own else ""
    if text and not any(text in piece for piece in pieces):
        pieces.append(text)
    pieces += _coupled(getattr(workload, "sweep", {}))
    return "\n".join(pieces)


def _coupled(sweep: Any) -> Iterator[str]:
    """Yield what coupled values are: their text may stand in another module."""
    for axis, values in sweep.items() if isinstance(sweep, Mapping) else ():
        for name, thing in values.items() if isinstance(values, Mapping) else ():
            if isinstance(thing, Mapping):
                plain = {n: v for n, v in thing.items() if isinstance(v, str | int | float | tuple)}
                yield f"{axis} {name!r}: {_without_address(plain)}"


def _source(thing: Any) -> str:
    try:
        lines = source_lines(thing)[0] if isinstance(thing, type) else inspect.getsource(thing)
        return textwrap.dedent("".join(lines)).strip()
    except NO_SOURCE:
        return ""


def source_lines(cls: type) -> tuple[list[str], int]:
    """Return what `inspect.getsourcelines` does for a class, without reading the file each time.

    Up to Python 3.12 that parses all of the class's file.

    Raises:
        OSError, TypeError, SyntaxError, tokenize.TokenError: the text is not to be had.
    """
    file = inspect.getsourcefile(cls)
    if sys.version_info >= (3, 13) or file is None:
        return inspect.getsourcelines(cls)
    linecache.checkcache(file)
    lines = linecache.getlines(file, vars(sys.modules[cls.__module__]))
    if file not in _files or _files[file][0] is not lines:
        classes = list(_classes(ast.parse("".join(lines)), ""))
        count = Counter(name for name, _ in classes)
        _files[file] = lines, {name: line for name, line in classes if count[name] == 1}
    start = _files[file][1].get(cls.__qualname__)
    if start is None:  # none, or several to choose among
        return inspect.getsourcelines(cls)
    return inspect.getblock(lines[start - 1 :]), start


_files: dict[str, tuple[list[str], dict[str, int]]] = {}
"""By file: its lines, and at which of them each class begins whose name is there once."""


def _classes(node: ast.AST, within: str) -> Iterator[tuple[str, int]]:
    """Yield the qualified name and the first line of each class."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, ast.ClassDef):
            name = f"{within}{child.name}."
            decorators = child.decorator_list
            yield name[:-1], decorators[0].lineno if decorators else child.lineno
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{within}{child.name}.<locals>."
        yield from _classes(child, name)


def _source_of_class(cls: type) -> str:
    try:
        file = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        return ""
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if (
            inspect.isfunction(function)
            and function.__qualname__.startswith(f"{cls.__qualname__}.")
            and function.__code__.co_filename.startswith("<")
            and function.__code__.co_filename != file
        ):
            return ""  # Python 3.13 takes the lines of the module's file for those of an `exec`
    return _source(cls)


def _source_of_members(cls: type) -> str:
    """Describe a class whose text is not to be had (made by `type`, typed at a prompt)."""
    lines = [f"class {cls.__name__}:"]
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_") or name.startswith("track_") or name == "setup_cache":
            continue
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            defaults = _without_address((function.__defaults__, function.__kwdefaults__))
            lines.append(
                _source(function) or f"{name}: {_source_of_code(function.__code__)} {defaults}"
            )
        else:
            lines.append(f"{name} = {_without_address(value)}")
    return "\n".join(lines)


def _source_of_code(code: CodeType) -> str:
    """Describe code whose text is not to be had, alike in every process."""
    constants = ", ".join(map(_constant, code.co_consts))
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} ({constants})"


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return _source_of_code(value)
    if isinstance(value, frozenset):  # its order changes from process to process
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"
    return repr(value)


def _without_address(value: object) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
