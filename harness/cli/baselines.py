"""`harness baselines`: XLA beside the baselines. Thin: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.exit_codes import NOTHING_MEASURED
from harness.cli.saying import say, warnings_said

if TYPE_CHECKING:
    import pandas as pd


HELP = """Is XLA faster than the baselines, by how much, and when does its compilation pay?

\b
  harness baselines                          a table per workload
  harness baselines -s softmax --format json every number of some
  harness baselines --figure fusion.svg      ratios with intervals, and the roofline

\b
Reading a row:
  ratio       time of the baseline / time of XLA; above 1 XLA is faster. In brackets its 95 %
              interval over processes; there is none with fewer than 3 on a side.
  launches    kernels of XLA | of the baseline (its array operations, where not counted).
  bytes       moved, in multiples of the least that any program must move.
  roofline    share of what the machine can do at best, by the ceilings of the same sweep.
  pays after  calls until XLA's compilation is paid back, with a cold | warm cache.
  verdict     XLA faster; baseline faster; unsure: the interval holds 1; no ratio: a check
              failed, and the reason stands below the table.

A ratio is only given where both sides were right (against float64), used the threads they were
told to, and stayed below the roofline. Losses are shown like wins.

\b
Exit codes: 0 fine; 2 wrong usage; 4 there is no comparison to show.
"""


def baselines(
    path: options.ResultsPath = Path("results"),
    select: options.Select = None,
    format_: Annotated[
        options.Format,
        typer.Option(
            "--format",
            help="table; markdown, the same to paste; csv or json, every column in full precision.",
        ),
    ] = options.Format.table,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw ratios and roofline into a .svg, .png or .html file (extra 'figures').",
        ),
    ] = None,
) -> None:
    """Print XLA beside the baselines; :data:`HELP` is what the command says of itself."""
    from harness.frame.against import against_baseline
    from harness.frame.against_tables import without_empty_axes
    from harness.frame.choose import narrow
    from harness.report import charts

    if figure is not None:
        charts.check(figure)
    with warnings_said():
        frame = against_baseline(path)
    if frame.empty:
        say(f"no comparison under {path}. `harness run --with-baselines` makes some.")
        raise typer.Exit(NOTHING_MEASURED)
    frame = without_empty_axes(narrow(frame, select or [], latest=False))
    _print(frame, format_)
    if figure is not None:
        from harness.report.figures.against import chart

        charts.save(chart(frame), figure)
        say(f"{figure} drawn")


def _print(frame: pd.DataFrame, format_: options.Format) -> None:
    from harness.frame import against_tables as texts

    if format_ is options.Format.csv:
        frame.to_csv(sys.stdout, index=False)
    elif format_ is options.Format.json:
        print(texts.to_json(frame))
    elif format_ is options.Format.markdown:
        for heading, table in texts.tables(frame):
            print(f"**{heading}**\n\n{texts.to_markdown(table)}\n")
        print("\n".join(f"- {line}" for line in (*texts.LEGEND, *texts.notes(frame))))
    else:
        from harness.cli.terminal import console, print_rows

        for heading, table in texts.tables(frame):
            console.print(heading, markup=False, soft_wrap=True, style="bold")
            print_rows(table)
        for line in (*texts.LEGEND, *texts.notes(frame)):
            console.print(line, markup=False, soft_wrap=True)
