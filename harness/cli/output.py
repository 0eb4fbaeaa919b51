"""The one way out: what a command prints or writes, in each format, and what it says besides."""

from __future__ import annotations

import enum
import json
import math
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from click.exceptions import Exit
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.errors import ExitCode, UsageError
from harness.output.parts import Heading as Heading
from harness.output.parts import Part as Part
from harness.output.parts import Rows as Rows
from harness.output.parts import TextTable as TextTable
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
            content = _frame(rows).to_dict("records") if document is None else document
            self.text(json_text(content))
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
    """Print the parts of a page; a file or a pipe takes lines of any length."""
    width = to.width if to.is_terminal or to.width != WIDTH else sys.maxsize
    for part in parts:
        if isinstance(part, TextTable):
            for line in fitted(part, width):
                to.print(line, soft_wrap=True)
        elif isinstance(part, Table):
            to.print(part)
        elif isinstance(part, Text):
            if to.color_system is None or to.no_color:
                print(printable(part.plain, "\n\t"), file=to.file)  # rich would change its tabs
            else:
                to.print(part, soft_wrap=True)
        else:
            style = "bold" if isinstance(part, Heading) else None
            text = between_words(printable(part, "\n"), width)
            to.print(text, markup=False, emoji=False, soft_wrap=True, style=style)


def between_words(text: str, width: int) -> str:
    """Break lines that are too long between words, further lines indented as the first."""
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * (len(line) - len(line.lstrip())),
            break_long_words=False,
            break_on_hyphens=False,
        )
        if len(line) > width
        else line
        for line in text.split("\n")
    )


LEAST = 40
"""Characters to which long texts are cut before whole columns are left out."""

SHORTEST = 12
"""Characters to which they are cut where no more columns can be left out."""

GAP = 2
"""Characters between two columns."""


def fitted(rows: TextTable, width: int) -> Iterator[Text]:
    """Yield the lines of a table, one a row, none longer than `width`.

    What is too wide gets shorter cells, then shorter texts, then fewer columns, which a last line
    names. The first two columns stay.
    """
    table = _columns(rows.frame)
    if rows.compact is not None and _width(table) > width:
        table = _columns(rows.compact)
    names = list(table)
    others = [name for name in reversed(names[2:]) if name not in rows.dropped]
    others.sort(key=rows.last.__contains__)
    listed = [name for name in rows.dropped if name in names]
    steps = [(listed[:count], LEAST) for count in range(len(listed) + 1)]
    steps += [([*listed, *others[:count]], SHORTEST) for count in range(len(others) + 1)]
    for without, least in steps:
        shown = {one: cells for one, cells in table.items() if one not in without}
        cut = [one for one in shown if one in rows.cut]
        too_wide = _width(shown) - width
        spare = {one: max(0, _widest(shown[one]) - least) for one in cut}
        if too_wide <= sum(spare.values()):
            break
    for one in sorted(cut, key=lambda each: -spare[each]):
        most = _widest(shown[one]) - min(max(0, too_wide), spare[one])
        too_wide -= _widest(shown[one]) - most
        shown[one] = _shorter(shown[one], most)
    left = {names[0], *rows.left, *(one for one in names[1:2] if not _are_numbers(table[one]))}
    columns = []
    for one, cells in shown.items():
        longest = _widest(cells)
        columns.append(
            [cell.ljust(longest) if one in left else cell.rjust(longest) for cell in cells]
        )
    for number, row in enumerate(zip(*columns, strict=True)):
        yield Text((" " * GAP).join(row).rstrip()[:width], style="" if number else "bold")
    if without:
        shown_in_order = ", ".join(name for name in names if name in without)
        yield Text(between_words(f"Not shown at {width} columns: {shown_in_order}.", width))


def _columns(frame: pd.DataFrame | Rows) -> dict[str, list[str]]:
    """Return the texts of each column, its heading first."""
    cells = zip(*frame.itertuples(index=False), strict=True)
    texts = [[printable(str(cell)) for cell in column] for column in cells]
    names = list(map(str, frame.columns))
    return {
        name: [name, *column]
        for name, column in zip(names, texts or [[]] * len(names), strict=True)
    }


def _are_numbers(cells: Sequence[str]) -> bool:
    """Tell whether all texts of a column below its heading are numbers with units, or none."""
    return all(re.fullmatch(r"([<≥] )?[\d.,]+( (of )?\S+)?|[–-]?", one) for one in cells[1:])


def _widest(cells: Iterable[str]) -> int:
    return max(map(len, cells))


def _width(table: dict[str, list[str]]) -> int:
    return sum(map(_widest, table.values())) + GAP * (len(table) - 1)


def _shorter(cells: list[str], most: int) -> list[str]:
    """Return texts of at most so many characters; what differs looks different still."""
    shorter = [_begun(cell, most) for cell in cells]
    if len({*shorter}) == len({*cells}):
        return shorter
    head = (most - 1) // 2
    return [c if len(c) <= most else f"{c[:head]}…{c[head + 1 - most :]}" for c in cells]


def without_families(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with `Gelu` for `elementwise.Gelu`, where all are clear so."""
    names = frame["workload"].unique()
    short = {name: name.rpartition(".")[2] for name in names}
    if len({*short.values()}) < len(names):
        return frame
    return frame.assign(workload=frame["workload"].map(short))


def _begun(text: str, most: int) -> str:
    """Return a text of at most so many characters: cut after a whole part, else after a word."""
    if len(text) <= most:
        return text
    start = text[: most - 1]
    end = max(start.rfind(mark) + 1 for mark in (", ", "; ", ". "))
    if end < most / 2:
        end = start.rfind(" ")
    return f"{start[:end]} …" if end > most / 2 else f"{start}…"


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
    parsed = json.loads(text.encode("utf-8", "replace"))  # no file name that is not UTF-8
    return pd.json_normalize(parsed)


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
    width = notes.width if notes.is_terminal else sys.maxsize
    for line in lines:
        print(between_words(f"harness: {printable(line)}", width), file=sys.stderr, flush=True)


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
def resumable() -> Iterator[None]:
    """End at Ctrl-C with its exit code, and say that the same command measures what is left."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted. Finished records are stored; the same command resumes.")
        raise Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say each warning of what is done inside once, afterwards, without Python's file and line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            say(*dict.fromkeys(str(warning.message) for warning in caught))
