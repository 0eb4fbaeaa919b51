"""The answer of a profile on a terminal or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console

from harness.cli.options import Argument
from harness.profiles.answer.summary import LINES, summary
from harness.profiles.recorded import Recorded

Folder = Annotated[Path, Argument(metavar="FOLDER", help="What `harness profile -o FOLDER` wrote.")]

WIDTH, WIDEST = 100, 120
"""Characters of a line where there is no terminal, and on the widest one."""


def answer(profile: Recorded, console: Console | None = None, below: int = 1) -> list[str]:
    """Return a profile's answer: so short that its first line stays on a screen, else all of it.

    For a file `console` is None; `below` are lines of the screen that something else takes, such as
    the shell's prompt.
    """
    if console is None or not console.is_terminal:
        return summary(profile, WIDTH, None)
    return summary(profile, min(console.width, WIDEST), min(LINES, console.height - below))
