"""Write a budget file from what a profile saw: counts, which are the same every time."""

from __future__ import annotations

import json
import re
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.profiles.budgets.files import PROJECT
from harness.profiles.counting import by_function
from harness.profiles.model import Profile

HEAD = """\
# How much may be built; `harness profile check FOLDER --budget {name}` fails where it is more.
# Counts only: they are the same on every machine. max_compiles counts what was compiled and what
# was loaded from the persistent cache.
"""


def write(profile: Profile, path: Path, force: bool = False) -> int:
    """Write a budget file that a profile just keeps to; return how many functions it names.

    Args:
        profile: what was seen.
        path: the file.
        force: replace it, if it is there.

    Raises:
        UsageError: if the file is there already, or is a `pyproject.toml`.
        StoreError: if it cannot be written.
    """
    if path.name == PROJECT:
        raise UsageError(
            f"{path} is not written to. Write a file of its own, and put its tables under "
            "[tool.harness.budget] if you want them there."
        )
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Give another name, or --force to replace it.")
    text, count = text_of(profile, path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from None
    return count


def text_of(profile: Profile, name: str = "budgets.toml") -> tuple[str, int]:
    """Return the text of a budget file, and how many functions it names."""
    functions = by_function(profile.builds)
    eager = [counted for counted in functions if counted.eager]
    own = [counted for counted in functions if not counted.eager]
    most: dict[str, tuple[int, int]] = {}
    for counted in own:  # of several with one name, such as lambdas, the one that was built most
        compiles, traces = most.get(counted.label, (0, 0))
        most[counted.label] = max(compiles, counted.requests), max(traces, counted.traces)
    lines = [
        HEAD.format(name=name),
        "[total]",
        f"max_compiles = {sum(counted.requests for counted in own)}",
        f"max_eager = {sum(counted.requests for counted in eager)}",
        "",
        "[default] # functions that are not named below",
        "max_compiles = 1",
    ]
    for label, (compiles, traces) in sorted(most.items()):
        lines += [
            "",
            f"[functions.{_quoted(label)}]",
            f"max_compiles = {compiles}",
            f"max_traces = {traces}",
        ]
    return "\n".join(lines) + "\n", len(most)


def _quoted(label: str) -> str:
    try:
        re.compile(label)
    except re.error:
        label = re.escape(label)
    return json.dumps(label, ensure_ascii=False).replace("\x7f", "\\u007F")
