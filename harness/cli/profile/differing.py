"""`harness profile diff`: what changed between two profiles. Thin: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.profile import app

if TYPE_CHECKING:
    from rich.console import Console

    from harness.profiles.comparing import Difference
    from harness.profiles.comparing.formats import Rows

MOST_ROWS = 30

HELP = """Say what changed from profile A to profile B: functions, causes, totals, settings.

\b
  harness profile -o before -- python train.py
  harness profile -o after -- python train.py --new
  harness profile diff before after
  harness profile diff before after --format markdown -o comment.md

Functions are told apart by file and qualified name, wherever the line; one that was renamed is new
and gone. Counts, causes and bytes are exact. Seconds are of one run each and have no error bar:
they are shown, and never called a change (`harness compare` judges times, of several processes).

It is no verdict: the exit code is 0 (2 for wrong usage, 4 for a folder without a profile).
`harness profile check` is the one that fails.
"""


@app.command("diff", help=HELP, no_args_is_help=True)
def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="The profile to compare with.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The profile that is compared.")],
    format_: Annotated[
        options.Format,
        typer.Option(
            "--format",
            help="table; markdown, for a pull request; json, everything; csv, a row per function.",
        ),
    ] = options.Format.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write into a file.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every function, also those that are the same.")
    ] = False,
) -> None:
    """Compare two profiles; :data:`HELP` is what the command says of itself."""
    from harness.cli.files import open_, write
    from harness.profiles.comparing import compare, formats
    from harness.profiles.model import read

    difference = compare(read(a), read(b))
    if format_ is options.Format.markdown:
        write(formats.to_markdown(difference, every), output)
    elif format_ is options.Format.json:
        write(formats.to_json(difference), output)
    elif format_ is options.Format.csv:
        write(formats.frame(difference).to_csv(index=False).rstrip("\n"), output)
    elif output is None:
        from harness.cli.terminal import console

        _print(difference, console, every)
    else:
        from rich.console import Console

        with open_(output) as handle:
            _print(difference, Console(file=handle, width=200, highlight=False), every)


def _print(difference: Difference, console: Console, every: bool) -> None:
    from harness.cli.cache.printing import shown
    from harness.profiles.comparing import formats

    def say(text: str, style: str | None = None) -> None:
        console.print(shown(text), markup=False, emoji=False, soft_wrap=True, style=style)

    first, *rest = difference.answer
    say(first, "bold")
    for text in rest:
        say(text)
    for text in difference.warnings:
        say(f"Warning: {text}")
    changes = formats.listed(difference, every)
    shown_changes = changes if every else changes[:MOST_ROWS]
    for rows in (
        formats.functions_table(shown_changes),
        formats.totals_table(difference),
        formats.facts_table(difference),
    ):
        if rows[1]:
            say("")
            _table(rows, console)
    say("")
    if len(changes) > len(shown_changes):
        say(f"{len(changes) - len(shown_changes)} more functions changed: --all lists them.")
    for text in formats.footer(difference):
        say(text)


def _table(rows: Rows, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.cache.printing import shown

    headings, cells = rows
    table = Table(box=None, padding=(0, 2, 0, 0))
    words = ("function", "", "causes", "together", "recorded with")
    right = headings[0] != "recorded with"
    for heading in headings:
        number = right and heading not in words
        table.add_column(heading, justify="right" if number else "left", no_wrap=number)
    for row in cells:
        table.add_row(*(Text(shown(cell)) for cell in row))
    console.print(table)
