"""The answer of a profile on a terminal or in a file, and its budget's, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from harness.profiles.answer.summary import LINES, summary
from harness.profiles.budgets.file import CheckedBudget
from harness.profiles.recorded import Recorded
from harness.records.units import counted

WIDTH, WIDEST = 100, 120
"""Characters of a line where there is no terminal, and on the widest one."""


def answer(profile: Recorded, console: Console | None = None, below: int = 1) -> list[str]:
    """Return a profile's answer, so short that its first line stays on the screen.

    Args:
        profile: what was recorded.
        console: where it is shown; None for a file.
        below: lines of the screen that something else takes, such as the shell's prompt.
    """
    if console is None or not console.is_terminal:
        return summary(profile, WIDTH)
    return summary(profile, min(console.width, WIDEST), min(LINES, console.height - below))


def judged(checked: CheckedBudget) -> Iterator[str]:
    """Yield what was exceeded of a budget, and why, line by line."""
    for message in checked.messages():
        yield from message.split("\n")
        yield ""


def verdict(checked: CheckedBudget) -> str:
    """Return in a line whether a profile keeps to its budget."""
    if not checked.uses:
        return f"{checked.file.path} limits nothing that was built."
    limits = counted(len(checked.uses), "limit")
    if checked.over:
        return f"Over the budget: {len(checked.over)} of {limits}."
    return f"Within the budget: {limits}."
