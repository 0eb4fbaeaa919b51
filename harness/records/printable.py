"""Text that a terminal or Markdown shows as it is: names may hold anything."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def printable(text: str, kept: str = "\n") -> str:
    r"""Return text with what would steer a terminal as its escape, such as `\x1b`.

    The characters in `kept` stay, though they are none that print.
    """
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if plain.isprintable():
        return plain
    return "".join(
        each if each.isprintable() or each in kept else f"\\x{ord(each):02x}" for each in plain
    )


def escaped(text: object) -> str:
    """Return text that Markdown and HTML leave as it is, on one line; code is between backticks."""
    flat = " ".join(html.escape(str(text), quote=False).split())
    # An @ would notify somebody; a letter before and after a _ keeps it plain.
    marked = re.sub(r"([\\`*\[\]|~])", r"\\\1", flat).replace("@", "&#64;")
    marked = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", marked)
    return re.sub(r"\\`([^`\\&]+)\\`", r"`\1`", marked)


def table_lines(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table; cells are escaped."""
    lines = [
        list(map(str, headings)),
        ["---"] * len(headings),
        *(map(escaped, row) for row in rows),
    ]
    return [f"| {' | '.join(cells)} |" for cells in lines]
