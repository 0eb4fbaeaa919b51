"""`harness profile show`: the answer, or one of the tables behind it. Thin: parse, call, print."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from harness.cli import options
from harness.cli.output import WIDTH, Format, Output, Part, TextTable, console
from harness.cli.profile.answer import answer
from harness.errors import UsageError
from harness.profiles.answer.inside import inside_lines
from harness.profiles.recorded import read
from harness.profiles.tables.frames import TABLES, frame
from harness.profiles.tables.listing import LONG, is_number, listed

ROWS = 40
"""Rows of a table that are printed; files have them all."""

HELP = """Show what a profile found: the answer on one screen, or a table.

\b
  harness profile show FOLDER                      the answer: seconds, causes, remedies
  harness profile show FOLDER --table functions    what was built how often, and how long it took
  harness profile show FOLDER --table causes       why: argument, values, remedy
  harness profile show FOLDER --table builds --format csv -o builds.csv

\b
Tables:
{tables}

\b
A terminal gets the main columns and the dearest 40 rows; csv and json have all. The columns are
those of harness.load_profile(FOLDER).frame(TABLE); docs/profile.md says what each means.
Exit codes: 0 fine; 2 wrong usage; 4 no profile is there, or the output cannot be written.
"""


_ABOUT = "\n".join(f"  {name:11} {table.about}" for name, table in TABLES.items())

Table = enum.StrEnum("Table", list(TABLES))  # type: ignore[misc]
"""The tables."""


class TableFormat(enum.StrEnum):
    """How a table is written."""

    table = "table"
    csv = "csv"
    json = "json"


@options.command(HELP.format(tables=_ABOUT), no_args_is_help=True)
def show(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A profile: the folder that was written.")
    ],
    table: Annotated[Table | None, typer.Option("--table", "-t", help="Which table.")] = None,
    format_: Annotated[
        TableFormat, typer.Option("--format", help="How it is written.")
    ] = TableFormat.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write into a file.")
    ] = None,
) -> None:
    """Show a profile."""
    if table is None and format_ is not TableFormat.table:
        raise UsageError(
            f"--format {format_} writes a table: name one with --table, for example "
            "--table functions."
        )
    profile = read(folder)
    out = Output(Format(format_), output)
    if table is None:
        lines = answer(profile, console) if output is None else answer(profile)
        out.page([*lines, *inside_lines(profile)])
    elif format_ is not TableFormat.table:
        _data(frame(profile, table), table, out)
    else:
        most = ROWS if output is None else None
        rows, note = listed(frame(profile, table), table, most, WIDTH if output else console.width)
        out.page(_rows(rows, table, note))


def _rows(rows: pd.DataFrame, table: Table, note: str) -> Iterator[Part]:
    if rows.empty:
        yield f"There is nothing for the table {table}."
        return
    words = [heading for heading in map(str, rows.columns) if not is_number(heading)]
    yield TextTable(rows, words, LONG)
    if note:
        yield note


def _data(made: pd.DataFrame, table: Table, out: Output) -> None:
    rows = json.loads(made.to_json(orient="records", double_precision=9))
    if out.format is Format.csv:
        out.text(made.to_csv(index=False))
    else:
        out.text(json.dumps({"schema": 1, "table": str(table), "rows": rows}))
