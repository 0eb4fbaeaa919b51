"""`harness export`: the rows of the frame in a file."""

from __future__ import annotations

from pathlib import Path

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import say, warnings_said
from harness.errors import ExitCode
from harness.frame import choose
from harness.frame.choose import typed
from harness.frame.exchange import Tool, document
from harness.frame.export import write
from harness.frame.load import everything
from harness.records.files import replaced


@options.command(
    common="output tool where select",
    output=Option("--output", "-o", help="A .csv or .parquet file; with --format a .json file."),
    tool=Option(
        "--format",
        metavar="TOOL",
        help="For benchmark-action, bencher, pytest-benchmark or pyperf.",
    ),
    where=Option(
        metavar="COLUMN=VALUE",
        help="Only rows with this value in this column; repeat a column for several of its "
        "values, and name several columns to narrow further.",
    ),
)
def export(
    *,
    output: Path,
    tool: Tool | None = None,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    where: list[str] | None = None,
) -> None:
    r"""Write the rows of the frame to a file.

    \b
      harness export -o rows.csv                 lists as JSON
      harness export -o rows.parquet             with types; lists are lists
      harness export -o night.parquet --where night=2026-11-20
      harness export -o compile.csv --where stage=compile --where size=1024

    A Parquet file is read back by harness.load("rows.parquet", all=True), which gives the rows
    that the results tree gives. Its column `axes` holds the axes of each row as JSON.

    Parquet needs the extra `parquet` (README.md, Install).

    For other tools: a value in nanoseconds (benchmark-action, bencher) or seconds, its interval and
    samples, by workload, case and stage; of each machine the commit that was measured last, or
    that --where names. Tools that know seconds alone get no other rows; how many is shown.

    \b
      harness export --format benchmark-action -o bench.json    tool: customSmallerIsBetter
      harness export --format bencher -o bench.json             bencher run --adapter json --file
      harness export --format pytest-benchmark -o bench.json    pytest-benchmark compare
      harness export --format pyperf -o bench.json              pyperf stats, pyperf compare_to

    \b
    Exit codes: 0 fine; 2 wrong usage; 4 nothing was found, or the output cannot be written.
    """
    with warnings_said():
        frame = everything(results, where=typed(where or []))
    frame = choose.rows(frame, filters)
    if frame.empty:
        raise Exit(ExitCode.NOTHING)
    if tool is None:
        write(frame, output)
        print(f"{len(frame)} rows written to {output}")
        return
    content, count, left_out = document(frame, tool)
    if not content:
        say(f"no row has a value that {tool} can hold.")
        raise Exit(ExitCode.NOTHING)
    with replaced(output, "wb") as handle:
        handle.write(content)
    others = f"; {left_out} left out: their unit is none of {tool}'s, or they are 0" * bool(
        left_out
    )
    print(f"{count} rows written to {output}{others}")
