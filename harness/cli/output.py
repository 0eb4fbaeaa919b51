"""The one way out: what a command prints or writes, in each format, and what it says besides."""

from __future__ import annotations

import enum
import itertools
import json
import math
import re
import sys
import textwrap
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.errors import UsageError
from harness.records.files import replaced
from harness.records.printable import escaped, printable, table_lines

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 200
"""Columns of a file or a pipe, where there is no terminal to ask."""


class _Console(Console):
    """Rich's, which would end with 1 where nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Leave it to the group of commands."""
        raise BrokenPipeError


console = _Console(highlight=False)
notes = _Console(stderr=True, highlight=False)
for _console in (console, notes):
    if not _console.is_terminal:
        _console.width = WIDTH


class Format(enum.StrEnum):
    """How something is written."""

    table = "table"
    markdown = "markdown"
    json = "json"
    csv = "csv"


class Heading(str):
    """A line that stands out."""


class Rows:
    """Rows of text by column, for a table without pandas, which takes half a second to import."""

    def __init__(self, rows: Sequence[dict[str, str]]) -> None:
        self.columns = list(rows[0])
        self.rows = [list(row.values()) for row in rows]

    def itertuples(self, index: bool = True) -> Iterator[Sequence[str]]:
        """Yield the cells of each row, as a frame does."""
        return iter(self.rows)


@dataclass(frozen=True)
class TextTable:
    """A table of text, one cell a column and row."""

    frame: pd.DataFrame | Rows
    left: Collection[str] = ()
    """Columns that begin at the left, with the first two; numbers end at the right."""
    wrapped: Collection[str] = ()
    """Columns whose cells may take several lines, with the second."""
    dropped: Sequence[str] = ()
    """Columns that are left out, in this order, where the table is too wide for its place."""
    whole: bool = False
    """Whether such cells take as many lines in a block, too; else what does not fit is left out."""


Part = str | Heading | TextTable | Table | Text
"""What a page consists of."""


@dataclass(frozen=True)
class Output:
    """Where a command's output goes, and in which format."""

    format: Format = Format.table
    path: Path | None = None
    """A file, written as a whole or not at all; None for standard output."""

    def show(
        self, parts: Iterable[Part], rows: pd.DataFrame | Sequence[Any], document: Any = None
    ) -> None:
        """Write what a command found.

        Args:
            parts: the page for people, in the formats `table` and `markdown`.
            rows: everything, for `csv` and `json`: a frame, or structs.
            document: what `json` has instead of a list of these rows.
        """
        if self.format is Format.csv:
            self.text(_frame(rows).to_csv(index=False))
        elif self.format is Format.json:
            found = _frame(rows).to_dict("records") if document is None else document
            self.text(json_text(found))
        elif self.format is Format.markdown:
            self.text(markdown(parts))
        else:
            self.page(parts)

    def text(self, text: str) -> None:
        """Write a text as it is."""
        text = text.rstrip("\n") + "\n"
        if self.path is None:
            sys.stdout.write(printable(text, "\n\t") if sys.stdout.isatty() else text)
            return
        with replaced(self.path) as handle:
            handle.write(text)

    def page(self, parts: Iterable[Part]) -> None:
        """Write a page for people: in colour and to the terminal's width where there is one."""
        if self.path is None:
            print_page(parts, console)
            return
        parts = list(parts)  # what goes wrong in making them is no fault of the file's
        with replaced(self.path) as handle:
            plain = Console(file=handle, width=WIDTH, highlight=False, color_system=None)
            print_page(parts, plain)


def print_page(parts: Iterable[Part], to: Console = console) -> None:
    """Print the parts of a page."""
    for part in parts:
        if isinstance(part, TextTable):
            for piece in fitted(part, to.width):
                soft = isinstance(piece, Text)  # a terminal breaks it, and nothing is cut
                to.print(piece, soft_wrap=soft)
        elif isinstance(part, Table):
            to.print(part)
        elif isinstance(part, Text):
            if to.color_system is None or to.no_color:
                print(printable(part.plain, "\n\t"), file=to.file)  # rich would change its tabs
            else:
                to.print(part, soft_wrap=True)
        else:
            style = "bold" if isinstance(part, Heading) else None
            to.print(printable(part), markup=False, emoji=False, soft_wrap=True, style=style)


LEAST = 40
"""Characters that a column of long texts has at least in a table."""

GAP = 2
"""Characters between two columns."""


def fitted(rows: TextTable, width: int) -> Iterator[Table | Text]:
    """Yield a table of text as it fits: as one, or where that is too wide as a block a row.

    No name, number or unit is cut. In a block stand the first columns that begin at the left, then
    the others with their headings, and each long text in a line of its own, cut between two of its
    parts.
    """
    for count in range(len(rows.dropped) + 1):
        table, blocks = _table(rows, rows.dropped[:count], width)
        if table is not None:
            yield table
            return
    yield from blocks


def _table(
    rows: TextTable, without: Sequence[str], width: int
) -> tuple[Table | None, Iterator[Text]]:
    """Return a table without some of its columns if it fits, and else its blocks."""
    shown = [n for n, heading in enumerate(rows.frame.columns) if str(heading) not in without]
    headings = [str(rows.frame.columns[n]) for n in shown]
    cells = [[printable(str(row[n])) for n in shown] for row in rows.frame.itertuples(index=False)]
    wrapped = [heading in (rows.wrapped or headings[1:2]) for heading in headings]
    left = [position < 2 or heading in rows.left for position, heading in enumerate(headings)]
    table = Table(box=None, padding=(0, GAP, 0, 0))
    least = 0
    for heading, *texts, begins, wraps in zip(headings, *cells, left, wrapped, strict=True):
        longest = max(map(len, [heading, *texts]))
        if wraps:
            word = max(
                (len(word) for text in [heading, *texts] for word in text.split()), default=0
            )
            longest = min(longest, max(word, LEAST))
        least += longest + GAP
        justify: Literal["left", "right"] = "left" if begins else "right"
        table.add_column(heading, justify=justify, no_wrap=not wraps, overflow="fold")
    if least <= width:
        for row in cells:
            table.add_row(*map(Text, row))
        return table, iter(())
    ends = (place for place, begins in enumerate(left) if not begins)
    named = next(ends, 1 if rows.whole else len(left))
    blocks = (_block(headings, row, named, wrapped, width, rows.whole) for row in cells)
    return None, itertools.chain.from_iterable(blocks)


def _block(
    headings: list[str],
    row: list[str],
    named: int,
    wrapped: list[bool],
    width: int,
    whole: bool,
) -> Iterator[Text]:
    yield Text("  ".join(filter(None, row[:named])), style="bold")
    long, line = [], " "
    for heading, cell, wraps in zip(headings[named:], row[named:], wrapped[named:], strict=True):
        if wraps:
            long.append(cell)
        elif cell.strip():
            item = f" {heading} {cell}"
            if len(line) + len(item) + 2 > width and line.strip():
                yield Text(line)
                line = " "
            line += f" ·{item}" if line.strip() else item
    if line.strip():
        yield Text(line)
    for text in filter(None, long):
        lines = textwrap.wrap(text, width - 2) if whole else [_begun(text, width - 2)]
        yield from (Text(f"  {line}") for line in lines)


def _begun(text: str, most: int) -> str:
    """Return a text of at most so many characters: cut after a whole part, else after a word."""
    if len(text) <= most:
        return text
    start = text[: most - 1]
    end = max(start.rfind(mark) + 1 for mark in (", ", "; ", ". "))
    if end < most / 2:
        end = start.rfind(" ")
    return f"{start[:end]} …" if end > 0 else f"{start}…"


def markdown(parts: Iterable[Part]) -> str:
    """Return a page in Markdown: headings are bold, lines are items of a list."""
    blocks: list[str] = []
    for part in parts:
        if isinstance(part, TextTable):
            rows = list(map(list, part.frame.itertuples(index=False)))
            blocks += [*table_lines(list(part.frame.columns), rows), ""]
        elif isinstance(part, Heading):
            blocks.append(f"**{escaped(part)}**\n")
        elif part:
            blocks.append(f"- {escaped(str(part))}")
    return printable("\n".join(blocks))


def _frame(rows: pd.DataFrame | Sequence[Any]) -> pd.DataFrame:
    """Return a row per struct, and a column per field of it and of what it holds."""
    import pandas as pd  # half a second that no other format takes

    if isinstance(rows, pd.DataFrame):
        return rows
    text = json.dumps(plain(rows), ensure_ascii=False)
    known = json.loads(text.encode("utf-8", "replace"))  # no file name that is not UTF-8
    return pd.json_normalize(known)


def json_text(document: Any) -> str:
    """Return strict JSON: what is not known (NaN, NaT) and what is infinite is null."""
    text = json.dumps(plain(document), indent=1, allow_nan=False, ensure_ascii=False)
    # Only within JSON's own texts can there be what is not printable, written as ASCII there.
    return re.sub(
        r"[^\n -~]", lambda one: one[0] if one[0].isprintable() else json.dumps(one[0])[1:-1], text
    )


def plain(value: Any) -> Any:
    """Return a value as strict JSON can hold it: no NaN, no infinity, no types of NumPy."""
    if isinstance(value, msgspec.Struct) or is_dataclass(value):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "isoformat"):
        return value.isoformat() if value == value else None  # NaT is not equal to itself
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def say(*lines: str) -> None:
    """Say something beside the output, on standard error."""
    for line in lines:
        print(f"harness: {printable(line)}", file=sys.stderr, flush=True)


def check_writable(option: str, path: Path) -> None:
    """Find out before minutes of work whether a file can be written, and leave it as it was."""
    there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise UsageError(
            f"{option} {path} cannot be written: {error.strerror}. Give a file in a folder that "
            "you can write to."
        ) from None


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say each warning of what is done inside once, afterwards, without Python's file and line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            say(*dict.fromkeys(str(warning.message) for warning in caught))
