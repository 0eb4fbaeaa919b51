"""Every option that a page names is one that its command takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from harness.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

CALL = re.compile(r"(?<![\w./-])harness (?P<name>[a-z]+)\b(?P<rest>[^`#\n]*)")
"""A command as it stands in running text or in a block, up to a comment."""


def unknown_options(text: str) -> list[str]:
    """Return `command --option` for each that no such command takes."""
    root = typer.main.get_command(app)
    unknown = []
    for call in CALL.finditer(text):
        command = root.commands.get(call["name"])
        if command is None:  # "harness" in running text
            continue
        own, dashes, _ = re.split(r" && |[|;]", call["rest"])[0].partition(" -- ")
        words = own.split()
        if words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        elif call["name"] == "profile" and dashes:
            command = command.commands["run"]
        taken = {name for parameter in command.params for name in parameter.opts}
        for word in words:
            option = word.strip("()[].,").partition("=")[0]
            if re.fullmatch(r"--?[a-z][\w-]*", option) and option not in {*taken, "-h", "--help"}:
                unknown.append(f"{call['name']} {option}")
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_options_that_there_are(page):
    assert unknown_options(page.read_text()) == []


def test_one_that_is_gone_would_be_seen():
    text = "harness profile --lively -- python a.py --steps 3  # --no\nand `harness run --efort 3`"
    assert unknown_options(text) == ["profile --lively", "run --efort"]
