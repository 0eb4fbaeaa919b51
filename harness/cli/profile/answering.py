"""The answer of a profile on a terminal or in a file, and its budget's, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from harness.profiles.budgets.file import Checked
    from harness.profiles.recorded import Recorded

WIDTH, WIDEST = 100, 120
"""Characters of a line where there is no terminal, and on the widest one."""


def answer(profile: Recorded, console: Console | None = None, below: int = 1) -> list[str]:
    """Return a profile's answer, so short that its first line stays on the screen.

    Args:
        profile: what was recorded.
        console: where it is shown; None for a file.
        below: lines of the screen that something else takes, such as the shell's prompt.
    """
    from harness.profiles.answer.summary import LINES, summary

    if console is None or not console.is_terminal:
        return summary(profile, WIDTH)
    return summary(profile, min(console.width, WIDEST), min(LINES, console.height - below))


def judged(found: Checked) -> Iterator[str]:
    """Yield what was exceeded of a budget, and why, line by line."""
    for message in found.messages():
        yield from message.split("\n")
        yield ""


def verdict(found: Checked) -> str:
    """Return in a line whether a profile keeps to its budget."""
    from harness.records.units import counted

    if not found.uses:
        return f"{found.file.path} limits nothing that was built."
    limits = counted(len(found.uses), "limit")
    if found.over:
        return f"Over the budget: {len(found.over)} of {limits}."
    return f"Within the budget: {limits}."
