"""`harness export`: the rows of the frame in a file."""

from __future__ import annotations

from pathlib import Path

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import warnings_said
from harness.errors import ExitCode
from harness.frame import choose
from harness.frame.choose import typed
from harness.frame.export import write
from harness.frame.load import everything


@options.command(
    output=Option("--output", "-o", help="A .csv or .parquet file."),
    where=Option(
        metavar="COLUMN=VALUE",
        help="Only rows with this value in this column; repeat a column for several of its "
        "values, and name several columns to narrow further.",
    ),
)
def export(
    *,
    output: Path,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    where: list[str] | None = None,
) -> None:
    r"""Write the rows of the frame to a file.

    \b
      harness export -o rows.csv                 lists as JSON
      harness export -o rows.parquet             with types; lists are lists
      harness export -o night.parquet --where night=2026-11-20
                                                 only what that night measured
      harness export -o compile.csv --where stage=compile --where size=1024
                                                 some rows; an axis is a column too

    A Parquet file is read back by harness.load("rows.parquet", all=True), which gives the rows
    that the results tree gives. Its column `axes` holds the axes of each row as JSON.

    Parquet needs the extra `parquet` (README.md, Install).

    \b
    Exit codes: 0 fine; 2 wrong usage; 4 nothing was found, or the output cannot be written.
    """
    with warnings_said():
        frame = everything(results, where=typed(where or []))
    frame = choose.rows(frame, filters)
    if frame.empty:
        raise Exit(ExitCode.NOTHING)
    write(frame, output)
    print(f"{len(frame)} rows written to {output}")
