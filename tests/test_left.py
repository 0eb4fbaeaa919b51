"""No page, help or docstring names what has left."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from harness.cli import app
from tools.surface import commands

ROOT = Path(__file__).parents[1]
LEFT = re.compile(
    r"harness (?:sign|fsck|adopt)\b|--from-snapshot"
    r"|cache (?:pack|unpack|prune|stats|ship|report|advise)\b"
    r"|--why\b|--across\b|profile (?:check|trace)\b|profile (?:run )?--live\b"
    r"|(?:compare|history)\b[^`\n]*--figure\b"
    r"|--partition\b|nightly --(?:jax|install|without|probe)\b|HARNESS_SIGN"
    r"|harness\.(?:releases|static_costs|scaling|suite)\b"
)


def texts():
    """Yield each text that a user reads, with where it stands; the changelog tells of what left."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]:
        yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for name, command in [("harness", app), *commands(app)]:
        yield f"harness {name} --help", command.get_help(click.Context(command, info_name=name))
    for file in (ROOT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield (
                    f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}",
                    (ast.get_docstring(node) or ""),
                )


def test_nothing_names_what_has_left():
    assert [(where, LEFT.findall(text)) for where, text in texts() if LEFT.search(text)] == []


@pytest.mark.parametrize(
    "text", ["`harness fsck`", "run --from-snapshot", "`compare A --figure x`"]
)
def test_a_name_of_what_has_left_would_be_found(text):
    assert LEFT.search(text)
