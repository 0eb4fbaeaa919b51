"""`harness profile show`: the answer, or one of the tables behind it. Thin: parse, call, print."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from harness.cli import files
from harness.cli.profile import app
from harness.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from harness.profiles.model import Profile

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
  time        the wall time of the run and of each process, in parts that add up to it
  functions   a row per function: builds, stages, first call, later calls that were looked up
  builds      a row per build: everything that is known of it
  causes      a row per function and cause
  sites       a row per line of code that builds were asked for from
  cache       what the persistent cache did: outcomes, reasons, seconds
  eager       lines that call JAX's own functions outside jit
  threads     a row per thread, with the parts of its time

\b
A terminal gets the main columns and the dearest 40 rows; csv and json have all. The columns are
those of harness.load_profile(FOLDER).frame(TABLE); docs/profile.md says what each means.
Exit codes: 0 fine; 2 wrong usage; 4 no profile is there, or the output cannot be written.
"""


class Table(enum.StrEnum):
    """The tables."""

    time = "time"
    functions = "functions"
    builds = "builds"
    causes = "causes"
    sites = "sites"
    cache = "cache"
    eager = "eager"
    threads = "threads"


class Format(enum.StrEnum):
    """How a table is written."""

    table = "table"
    csv = "csv"
    json = "json"


@app.command("show", help=HELP, no_args_is_help=True)
def show(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A profile: the folder that was written.")
    ],
    table: Annotated[Table | None, typer.Option("--table", "-t", help="Which table.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write into a file.")
    ] = None,
) -> None:
    """Show a profile; :data:`HELP` is what the command says of itself."""
    from harness.profiles.model import read

    if table is None and format_ is not Format.table:
        raise UsageError(
            f"--format {format_} writes a table: name one with --table, for example "
            "--table functions."
        )
    profile = read(folder)
    handle = files.open_(output) if output is not None else None
    try:
        if table is None:
            _lines(profile, handle)
        elif format_ is Format.table:
            _rows(profile, table, handle)
        else:
            _data(profile.frame(table), table, format_, handle)
    finally:
        if handle is not None:
            handle.close()


def _lines(profile: Profile, handle: TextIO | None) -> None:
    from harness.cli.cache.printing import print_lines, shown
    from harness.cli.profile.answering import answer
    from harness.cli.terminal import console

    if handle is None:
        print_lines(answer(profile, console))
    else:
        print(*map(shown, answer(profile)), sep="\n", file=handle)


def _rows(profile: Profile, table: Table, handle: TextIO | None) -> None:
    from rich.console import Console

    from harness.cli import terminal
    from harness.profiles.tables.listing import listed

    console = Console(file=handle, width=200, highlight=False) if handle else terminal.console
    most = ROWS if handle is None else None
    rows, note = listed(profile.frame(table), table, most, console.width)
    if rows.empty:
        console.print(f"There is nothing for the table {table}.", markup=False)
        return
    _print(console, rows)
    if note:
        console.print(note, markup=False)


def _print(console: Console, rows: pd.DataFrame) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    from harness.cli.cache.printing import shown
    from harness.profiles.tables.listing import LONG, is_number

    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for heading in map(str, rows.columns):
        right = is_number(heading)
        grid.add_column(
            heading,
            justify="right" if right else "left",
            no_wrap=heading not in LONG,
            overflow="fold",
        )
    for row in rows.itertuples(index=False):
        grid.add_row(*(Text(shown(str(cell))) for cell in row))
    console.print(grid)


def _data(frame: pd.DataFrame, table: Table, format_: Format, handle: TextIO | None) -> None:
    import json

    if format_ is Format.csv:
        text = frame.to_csv(index=False)
    else:
        rows = json.loads(frame.to_json(orient="records", double_precision=9))
        text = json.dumps({"schema": 1, "table": str(table), "rows": rows}) + "\n"
    print(text, end="", file=handle)
