"""`harness cache probe`: what a user expects of the persistent cache, and what happens here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cache import app
from harness.errors import ExitCode

if TYPE_CHECKING:
    from harness.cache.probe import Finding, Report

HELP = """Try out what a shared or long-lived cache must stand, in real processes.

Every row is an experiment in a scratch folder; no cache of yours is touched. All rows take about a
minute per installation.

\b
Exit codes: 0 every row is as a user would expect, or cannot be tried here; 2 wrong usage;
5 some rows are not as expected; 6 the probe cannot run (no JAX there).
"""


@app.command(help=HELP)
def probe(
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXE",
            help="The interpreter whose JAX is probed (this one by default); repeat for several. "
            "harness need not be installed there.",
        ),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this row; repeat for several."),
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Show what --json wrote instead of running; repeat."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything to this file as well.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a page with the installations side by side.")
    ] = False,
) -> None:
    """Try out what a cache must stand."""
    from harness.cache import probe as probing
    from harness.cache.probe import tables
    from harness.errors import UsageError

    if read and (python or row):
        raise UsageError(
            "--read shows what was found before, --python and --row run the probe. Expected one "
            "or the other: leave out --read, or --python and --row."
        )
    rows = probing.choose(row or [])
    if json:
        probing.check_writable(json)
    reports: list[Report] = [report for path in read or () for report in probing.load(path)]
    for executable in () if read else python or [sys.executable]:
        say = _Progress(len(rows))
        reports.append(probing.probe(executable, rows, say))
        if json:
            probing.save(json, reports)  # after each: a later failure loses nothing
    if json and read:
        probing.save(json, reports)
    if markdown:
        print(tables.markdown(reports), end="")
    else:
        for report in reports:
            _show(report)
    if any(report.failed for report in reports):
        raise typer.Exit(ExitCode.UNUSABLE)


class _Progress:
    """A line per row, on the way."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.done = 0

    def __call__(self, finding: Finding) -> None:
        self.done += 1
        print(
            f"[{self.done}/{self.rows}] {finding.verdict:4} {finding.row} "
            f"({finding.seconds_s:.1f} s)",
            file=sys.stderr,
            flush=True,
        )


def _show(report: Report) -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness.cache.probe import tables
    from harness.cli.output import console

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in tables.HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("row", "result"))
    for line in tables.cells(report):
        table.add_row(*map(escape, line), style="red" if "fail" in line else None)
    console.print(table)
    console.print(tables.summary(report), markup=False, soft_wrap=True)
