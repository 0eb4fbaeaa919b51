"""`harness export`: the rows of the frame in files."""

from __future__ import annotations

from pathlib import Path

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import warnings_said
from harness.errors import ExitCode, UsageError
from harness.frame import choose
from harness.frame import export as writer
from harness.frame.choose import typed
from harness.frame.frame import ORIGIN
from harness.frame.load import everything


@options.command(
    output=Option(
        "--output", "-o", help="A .csv or .parquet file, or a folder (a name without ending)."
    ),
    where=Option(
        metavar="COLUMN=VALUE",
        help="Only rows with this value in this column; repeat a column for several of its "
        "values, and name several columns to narrow further.",
    ),
    partition=Option(help="Write a folder, whatever the output is called."),
)
def export(
    *,
    output: Path,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    where: list[str] | None = None,
    partition: bool = False,
) -> None:
    r"""Write the rows of the frame to a file, or to a folder that many nights fit into.

    \b
      harness export -o rows.csv                 one file; lists as JSON
      harness export -o rows.parquet             one file, with types
      harness export -o nights                   a folder: a Parquet file per machine, commit,
                                                 environment, effort and night
      harness export -o nights --where night=2026-11-20
                                                 only what that night measured
      harness export -o compile.csv --where stage=compile --where size=1024
                                                 some rows; an axis is a column too

    \b
    Read it back:
      harness.load("nights", all=True, where={"workload": "nn.Predict"})

    It opens only what the conditions leave, and gives the rows that the results tree gives. The
    folder is partitioned as machine=M/night=N/ (hive), so DuckDB, Polars and pandas read it as
    well. Its column `axes` holds the axes of each row as JSON.

    Parquet needs the extra `parquet`: pip install 'jax-harness[parquet]'.

    Exporting to a folder again replaces the files of what is exported and leaves the others alone:
    results that are no longer in the tree stay in the folder.

    \b
    Exit codes: 0 fine; 2 wrong usage; 4 nothing was found, or the output cannot be written.
    """
    conditions = typed(where or [])
    if writer.is_dataset(output, partition):
        _refuse_parts(conditions, filters, output)
    with warnings_said():
        frame = everything(results, where=conditions)
    frame = choose.rows(frame, filters)
    if frame.empty:
        raise Exit(ExitCode.NOTHING)
    files = writer.write(frame, output, partition=partition)
    among = f" ({files} file{'s' * (files > 1)})" if output.is_dir() else ""
    print(f"{len(frame)} rows written to {output}{among}")


def _refuse_parts(conditions: dict[str, list[str]], filters: Filters, output: Path) -> None:
    """Raise where a part of a night would replace the whole of it."""
    inner = [f"--where {name}=…" for name in conditions if name not in ORIGIN]
    inner += ["A filter"] if filters else []
    if inner and output.exists() and any(output.iterdir() if output.is_dir() else ()):
        raise UsageError(
            f"{inner[0]} chooses some rows of a night, and they would replace the whole "
            f"night in {output}. Choose a new folder, or one file; {', '.join(ORIGIN)} "
            "choose whole nights."
        )
