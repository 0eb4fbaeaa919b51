"""Text and tables in Markdown, as an issue or a pull request takes them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def escaped(text: object) -> str:
    """Return text that Markdown and HTML leave as it is, on one line."""
    flat = " ".join(html.escape(str(text), quote=False).split())
    # An @ would notify somebody; a letter before and after a _ keeps it plain.
    marked = re.sub(r"([\\`*\[\]|~])", r"\\\1", flat).replace("@", "&#64;")
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", marked)


def table_lines(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table; cells are escaped."""
    lines = [
        list(map(str, headings)),
        ["---"] * len(headings),
        *(map(escaped, row) for row in rows),
    ]
    return [f"| {' | '.join(cells)} |" for cells in lines]
