"""`harness export` and `harness report`: everything that was measured, as files for others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option, Results
from harness.cli.output import say, warnings_said
from harness.errors import ExitCode, UsageError
from harness.frame import choose
from harness.frame import export as writer
from harness.frame.against import against_baseline
from harness.frame.choose import typed
from harness.frame.frame import ORIGIN
from harness.frame.load import everything
from harness.frame.program_facts import compile_times
from harness.report import files
from harness.report.measured import Measured
from harness.verdicts.error_rates import use_those_of


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
    results: Results,
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
        frame = everything(results.path, where=conditions)
    frame = choose.rows(frame, filters)
    if frame.empty:
        raise Exit(ExitCode.NOTHING)
    written = writer.write(frame, output, partition=partition)
    among = f" ({written} file{'s' * (written > 1)})" if output.is_dir() else ""
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


@options.command(
    output=Option("--output", "-o", help="The file. [default: report.html]"),
    asv=Option(metavar="ADDRESS", help="Link to asv's pages: an address or a path."),
    into=Option(metavar="DIR", help="Write it into asv's html_dir, and link both."),
    figures=Option(metavar="DIR", help="Write each figure as SVG into this folder."),
    png=Option(help="With --figures: as PNG, too."),
)
def report(
    *,
    results: Results,
    output: Path | None = None,
    asv: str = "",
    into: Path | None = None,
    figures: Path | None = None,
    png: bool = False,
) -> None:
    r"""Write one HTML file with figures and tables of everything that was measured.

    \b
      harness report                             results/ into report.html
      harness report RESULTS -o out/report.html  another results tree, or one records file
      harness report --into .asv/html            beside asv's pages, each linked to the other;
                                                 after `asv publish`, which writes its own anew
      harness report --asv https://host/bench/   with a link to asv's pages elsewhere
      harness report --figures docs/figures --png
                                                 each figure as SVG, and as PNG, too

    \b
    The file works offline and loads nothing. In it: where the time goes by stage, inside of
    compiles by XLA's passes, what changed since the time before and why, history and change points,
    scaling, cold against warm start, XLA against the baselines with the roofline, program facts,
    environment, and the limits of the numbers. What has not been measured says so, and names the
    command that measures it. Needs the extra `figures`: pip install 'jax-harness[figures]'.

    \b
    Exit codes: 0 written; 2 wrong usage; 4 there is nothing to report.
    """
    files.check_report()
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    if into is not None:
        if output is not None:
            raise UsageError("--into DIR names the file itself: leave out -o.")
        files.check_asv(into)
        output = into / files.ASV_REPORT
        asv = asv or "index.html"
    use_those_of(Path())
    links = files.asv_links(asv)
    frame, comparisons, passes = _load(results.path)
    from harness.report import page, sweep  # of the extra `figures`

    rates = sweep.error_rates(results.path, frame)
    made = sweep.report(Measured(frame, comparisons, rates, passes), links)
    output = output or Path("report.html")
    size = page.save(made, output)
    say(f"{output}: {size / 1e6:.1f} MB")
    if into is not None and files.link_asv(into):
        say(f"{into / 'index.html'} links to it. `asv publish` takes the link out again.")
    if figures is not None:
        say(f"{len(page.write_images(made, figures, png))} figures in {figures}")


def _load(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    with warnings_said():
        frame = everything(path)
        comparisons = against_baseline(path)
        passes = compile_times(path)
    if frame.empty:
        say(f"no results under {path}. `harness run` makes some.")
        raise Exit(ExitCode.NOTHING)
    return frame, comparisons, passes
