"""Docstrings are Google's style with Sphinx's roles; here both lead to the site's own pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`[~.]?(?P<name>[^`]+)`")
RETURNS = re.compile(r"^([ \t]*Returns:\n[ \t]+)", re.MULTILINE)
ERROR = re.compile("(Error|Exceeded|Warning)$")
LITERAL = re.compile(r"^(?P<before>.*?)::\n\n(?P<code>(?:[ \t]+.*\n?|\n)+)", re.MULTILINE)


class Roles(griffe.Extension):
    """Turns roles such as `func`, blocks after two colons, and errors into what MkDocs shows."""

    def on_package(self, *, pkg: griffe.Module, loader: Any, **kwargs: Any) -> None:
        """Change every docstring of a package, once all its names are known."""
        errors = [error.canonical_path for error in _classes(pkg) if ERROR.search(error.name)]
        for obj in _objects(pkg):
            if obj.is_module:
                _name_errors(obj, errors)
            if obj.docstring is not None:
                obj.docstring.value = _rewritten(obj, obj.docstring.value)


def _rewritten(obj: griffe.Object, text: str) -> str:
    text = LITERAL.sub(_fenced, text)
    text = ROLE.sub(lambda found: _link(obj, found), text)
    if isinstance(obj, griffe.Function) and obj.returns is not None:
        # What stands before the first colon would be taken for the type.
        text = RETURNS.sub(lambda found: f"{found[1]}{obj.returns}: ", text)
    return text


def _objects(obj: griffe.Object) -> Iterator[griffe.Object]:
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _objects(member)


def _classes(pkg: griffe.Module) -> Iterator[griffe.Object]:
    return (obj for obj in _objects(pkg) if obj.is_class)


def _name_errors(module: griffe.Object, errors: list[str]) -> None:
    """Let a module know all errors: `Raises:` names some that another one raises."""
    for path in errors:
        name = path.rpartition(".")[2]
        if name not in module.members:
            module.set_member(name, griffe.Alias(name, path))


def _link(obj: griffe.Object, found: re.Match[str]) -> str:
    """Return a link for a role, or plain text where the site has no page for the name."""
    return (
        f'<autoref optional identifier="{_full(obj, found[0], found["name"])}">'
        f"<code>{found['name']}</code></autoref>"
    )


def _full(obj: griffe.Object, role: str, name: str) -> str:
    """Return the full name of what a role means where it stands in `obj`."""
    if "`." in role:  # relative to the package
        package = obj.module if obj.module.is_init_module else obj.module.parent
        return f"{package.path}.{name}"
    first, dot, rest = name.partition(".")
    try:
        return f"{obj.resolve(first)}{dot}{rest}"
    except griffe.NameResolutionError:
        return name


def _fenced(found: re.Match[str]) -> str:
    before = f"{found['before']}:" if found["before"].strip() else ""
    code = textwrap.dedent(found["code"]).strip("\n")
    return f"{before}\n\n```python\n{code}\n```\n\n"
