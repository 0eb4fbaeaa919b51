"""The reference of the command line: what each command's --help-all prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.cli import app
from harness.cli.lazy import WHOLE

WIDTH = 90
"""Of a line of help, in characters."""

INTRODUCTION = """# Command line

What `--help-all` prints for each command. `harness` is also `python -m harness`.
"""


def command_line_page() -> str:
    """Return the page: a section for each command, the nested ones after the one they belong to."""
    return INTRODUCTION + "".join(_sections("harness", app, None, 2))


def _sections(name: str, command: Any, parent: Any, level: int) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": WIDTH}
    context = command.context_class(command, info_name=name, parent=parent, **settings)
    path = context.command_path
    context.meta[WHOLE] = True
    help_ = command.get_help(context).rstrip()
    context.meta.clear()  # nested contexts share it
    yield f"\n{'#' * level} {path} {{ #{path.replace(' ', '-')} }}\n\n```text\n{help_}\n```\n"
    for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
        child = command.get_command(context, name)
        if not child.hidden:
            yield from _sections(name, child, context, min(level + 1, 3))
