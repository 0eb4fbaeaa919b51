"""How help is written: to the terminal's width, the columns of examples included."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

import click

WIDEST = 104
"""Columns of a terminal beyond which help gets no wider."""

_LEAST = 28
"""Characters that a column beside a command has at least; with fewer it stands below."""

_COLUMNS = re.compile(r"(\s*\S.*?\s{2,})(\S.*)")


class Formatter(click.HelpFormatter):
    r"""Click's, and a paragraph after `\b` stays as it is only where that fits."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        width = self.width - self.current_indent
        paragraphs = text.split("\n\n")
        super().write_text("\n\n".join(_fitted(each, width) for each in paragraphs))


class HelpContext(click.Context):
    """Click's, with that formatter."""

    formatter_class = Formatter


class Command(click.Command):
    """Click's, with that context."""

    context_class = HelpContext


@dataclass
class _Item:
    """A line, and those that go on with it."""

    left: str
    """A command or a word, with the gap behind it; or spaces."""
    text: list[str] = field(default_factory=list)

    def goes_on_with(self, line: str) -> bool:
        """Tell whether a line of the source is more of the same text."""
        lead = len(line) - len(line.lstrip())
        if lead == 0:
            return not self.left and len(self.text[-1]) > 60 and not line.startswith("Exit codes")
        return lead >= 8 and lead == len(self.left) and not _COLUMNS.fullmatch(line)

    def lines(self, width: int) -> Iterator[str]:
        """Yield what is shown; a command alone is never broken."""
        if len(whole := self.left + " ".join(self.text)) <= width:
            yield whole
            return
        hang = len(self.left) if len(self.left) <= width - _LEAST else 6
        if self.left.strip() and hang < len(self.left):
            yield self.left.rstrip()
        first = self.left if hang == len(self.left) else " " * hang
        yield from textwrap.wrap(
            " ".join(self.text),
            width,
            initial_indent=first,
            subsequent_indent=" " * hang,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _fitted(paragraph: str, width: int) -> str:
    mark, *lines = paragraph.strip("\n").split("\n")
    if mark.strip() != "\b" or max(map(len, lines)) <= width:
        return paragraph
    items: list[_Item | str] = []
    for line in lines:
        before = items[-1] if items else ""
        if isinstance(before, _Item) and before.goes_on_with(line):
            before.text.append(line.strip())
        elif columns := _COLUMNS.fullmatch(line):
            items.append(_Item(columns[1], [columns[2]]))
        elif line.startswith(" " * 8) or not line.startswith(" "):
            text = line.lstrip()
            items.append(_Item(line.removesuffix(text), [text]))
        else:
            items.append(line)
    shown = (item.lines(width) if isinstance(item, _Item) else [item] for item in items)
    return "\n".join(["\b", *(line for each in shown for line in each)])
