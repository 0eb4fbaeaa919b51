"""`harness profile show`: the answer, or one of the tables behind it. Thin: parse, call, print."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import pandas as pd
from rich.text import Text

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import Format, Output, Part, TextTable, console
from harness.cli.profile.answer import answer, muted
from harness.errors import UsageError
from harness.output.profile_inside import inside_lines
from harness.output.profile_tables import TABLES, frame, is_number, listed
from harness.profiles.recorded import read

ROWS = 40
"""Rows of a table that are printed; files have them all."""

HELP = """Print the answer of a profile on one screen, or a table.

\b
  harness profile show FOLDER                      the answer: seconds, causes, remedies
  harness profile show FOLDER --all                the same, however many screens it takes
  harness profile show FOLDER --table functions    what was built how often, and how long it took
  harness profile show FOLDER --table causes       why: argument, values, remedy
  harness profile show FOLDER --table builds --format csv -o builds.csv

\b
Tables:
{tables}

\b
A terminal gets the main columns and the 40 rows that cost most; markdown has the main columns,
csv and json have all. The columns are those of harness.load_profile(FOLDER).frame(TABLE);
docs/profile.md says what each means.
Exit codes: 0 fine; 2 wrong usage; 4 no profile is there, or the output cannot be written.
"""

_ABOUT = "\n".join(f"  {name:11} {table.about}" for name, table in TABLES.items())

Table = enum.StrEnum("Table", list(TABLES))  # type: ignore[misc]
"""The tables."""


@options.command(
    common="table every mute format_ output",
    help=HELP.format(tables=_ABOUT),
    table=Option(
        "--table",
        "-t",
        metavar="TABLE",
        help="time, functions, builds, causes, sites, cache, eager or threads.",
    ),
    every=Option("--all", help="All findings, or all rows of the table."),
    mute=Option(metavar="ID", help="Only count findings with this remedy, as JH050; repeat."),
)
def show(
    *,
    folder: options.Profile,
    table: Table | None = None,
    every: bool = False,
    mute: list[str] | None = None,
    output: Output,
) -> None:
    """Show a profile."""
    if table is None and output.format is not Format.table:
        raise UsageError(
            f"--format {output.format} writes a table: name one with --table, for example "
            "--table functions."
        )
    profile = read(folder)
    if table is None:
        terminal = console if output.path is None else None
        lines = answer(profile, terminal, every=every, mute=muted(mute))
        # It fits the screen as it is; its commands are whole, to be copied.
        output.page([Text(line) for line in (*lines, *inside_lines(profile))])
        return
    made = frame(profile, table)
    document = {"schema": 1, "table": str(table), "rows": made.to_dict("records")}
    here = output.path is None and output.format is Format.table
    rows, note = listed(profile, made, table, ROWS if here and not every else None)
    output.show(_rows(rows, table, note), made, document)


def _rows(rows: pd.DataFrame, table: Table, note: str) -> Iterator[Part]:
    if rows.empty:
        yield f"There is nothing for the table {table}."
        return
    words = [heading for heading in map(str, rows.columns) if not is_number(heading)]
    yield TextTable(rows, words, words, list(rows.columns)[:1:-1])
    if note:
        yield note
