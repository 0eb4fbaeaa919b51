"""`harness history`: where a series of commits or nights changed. Thin: parse, call, print."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import files, options

if TYPE_CHECKING:
    import pandas as pd

NOTHING_COMPARABLE = 4

WIDE = 140
"""Columns of a terminal from which on a change point is one row of a table."""


HELP = """Where did a series of commits or nights change, and what else changed there?

\b
  harness history                              every change point, newest first
  harness history -s Attention --stage compile of some workloads, one stage
  harness history --since 2026-11-01           only since that night
  harness history --format markdown -o week.md to paste into an issue
  harness history --figure history.svg         the series, with the change points marked

\b
Reading a row:
  change    slower; faster; environment: execute, dispatch or load changed though the program is
            the same; incomparable (--cuts): the workload, the effort or the machine changed.
            `new`: one night shows it so far, the next confirms it or it is gone.
  ratio     level after / level before; above 1 is slower.
  points    nights or commits that the levels before | after rest on.
  commits   last that is not changed..first that is: the cause lies in between.

A series is one case and stage on one machine. It needs three points: two before a change and one
after. Steps smaller than what counts in a stage (compile, execute 5 %, dispatch 25 %; see
docs/method.md) are not shown. Calibrated times are compared where there are any.

\b
Exit codes: 0 fine, with change points or without; 2 wrong usage; 4 no series is long enough.
"""


def history(
    path: options.ResultsPath = Path("results"),
    select: options.Select = None,
    stage: options.Stages = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="NIGHT",
            help="Only changes first seen in this night or later; a day where nights have no name.",
        ),
    ] = "",
    cuts: Annotated[
        bool,
        typer.Option(
            "--cuts",
            help="Also where a series was cut: the workload, the effort or the machine changed.",
        ),
    ] = False,
    format_: Annotated[
        options.Format,
        typer.Option("--format", help="table; markdown, to paste; csv or json, every column."),
    ] = options.Format.table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there instead of printing."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the series into a .svg, .png or .html file (extra 'figures').",
        ),
    ] = None,
) -> None:
    """Print change points; :data:`HELP` is what the command says of itself."""
    from harness.frame.choose import narrow
    from harness.frame.load import load
    from harness.records import environment
    from harness.report import charts
    from harness.verdicts.history import history as change_points
    from harness.verdicts.history import series, texts

    if figure is not None:
        charts.check(figure)
    since = environment.night(since)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = load(path)
    for warning in caught:
        _say(str(warning.message))
    frame = _of_stages(narrow(frame, select or [], latest=False), stage or [])
    points = series(frame)
    found = texts.since(change_points(frame, cuts=cuts), since)
    lacking = texts.extent(points)
    if lacking and found.empty:
        _say(f"{path}: {lacking}")
        raise typer.Exit(NOTHING_COMPARABLE)
    _print(found, format_, output, since)
    if figure is not None:
        from harness.report.figures import history as drawing

        drawn, there_are = drawing.chart(points, found)
        charts.save(drawn, figure)
        more = f", the first {drawing.PANELS} of {there_are} series; choose with --select"
        _say(f"{figure} drawn{more if there_are > drawing.PANELS else ''}")


def _of_stages(frame: pd.DataFrame, stages: list[str]) -> pd.DataFrame:
    from harness.errors import UsageError

    for stage in stages:
        if stage not in set(frame["stage"]):
            known = ", ".join(dict.fromkeys(frame["stage"])) or "none"
            raise UsageError(f"No row is of stage {stage!r}. There are: {known}.")
    return frame[frame["stage"].isin(stages)] if stages else frame


def _print(found: pd.DataFrame, format_: options.Format, output: Path | None, since: str) -> None:
    from harness.verdicts.history import texts

    if format_ is options.Format.table and output is None:
        _print_table(found, since)
        return
    if format_ is options.Format.csv:
        text = found.to_csv(index=False).rstrip("\n")
    elif format_ is options.Format.json:
        text = texts.to_json(found)
    elif format_ is options.Format.markdown:
        text = texts.markdown(found)
    else:
        text = texts.table(found).to_string(index=False)
    files.write(text, output)
    if output is not None:
        _say(f"{len(found)} change points written to {output}")


def _print_table(found: pd.DataFrame, since: str) -> None:
    from harness.cli.terminal import console
    from harness.verdicts.history import texts

    if found.empty:
        after = f" since {since}" if since else ""
        console.print(
            f"No change point{after}: no step is as large as what counts in its stage.",
            markup=False,
            soft_wrap=True,
        )
        return
    rows = texts.table(found)
    if console.width < WIDE:
        for row in rows.itertuples(index=False):
            change, case, stage, levels, ratio, points, when, commits, beside = row
            console.print(f"{case} · {stage}", markup=False, soft_wrap=True, style="bold")
            for line in (
                f"{change} {ratio}  {levels}  {when}",
                f"points {points}, commits {commits}",
                beside,
            ):
                console.print(f"  {line}", markup=False, soft_wrap=True)
    else:
        console.print(_rich_table(rows))
    for line in texts.legend(found):
        console.print(line, markup=False, soft_wrap=True)


def _rich_table(rows: pd.DataFrame) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    wrapped: dict[str, Any] = {"overflow": "fold", "ratio": 1}
    for position, heading in enumerate(rows.columns):
        wide = position in (1, len(rows.columns) - 1)
        table.add_column(heading, **wrapped if wide else {"no_wrap": True})
    for row in rows.itertuples(index=False):
        table.add_row(*(Text(cell) for cell in row))
    return table


def _say(text: str) -> None:
    print(f"harness: {text}", file=sys.stderr)
