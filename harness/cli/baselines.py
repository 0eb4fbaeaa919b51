"""`harness baselines`: XLA beside the baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters
from harness.cli.output import Heading, Output, Part, TextTable, say, warnings_said
from harness.errors import ExitCode
from harness.frame import choose
from harness.frame.against import against_baseline
from harness.frame.frame import rows_of
from harness.output import against as texts
from harness.output.report import files

DROPPED = ("pays after", "roofline", "bytes", "launches", "baseline's", "XLA")
"""Columns that are left out, in this order, where the line is too short."""


@options.command(common="select case target figure format_")
def baselines(
    *,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    figure: options.Figure = None,
    output: Output,
) -> None:
    r"""Is XLA faster than the baselines, and when does its compilation pay off?

    \b
      harness baselines                           a table per workload
      harness baselines -s softmax --format json  every number of some
      harness baselines --figure fusion.svg       ratios, and the roofline

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
    given, and stayed below the roofline. Losses are shown like wins.

    \b
    Exit codes: 0 fine; 2 wrong usage; 4 there is no comparison to show.
    """
    if figure is not None:
        files.check_figure(figure)
    with warnings_said():
        frame = against_baseline(results)
    if frame.empty:
        say(f"no comparison under {results}. `harness run --with-baselines` makes some.")
        raise Exit(ExitCode.NOTHING)
    frame = texts.without_empty_axes(choose.rows(frame, filters))
    output.show(_page(frame), frame, [_plain(row) for row in rows_of(frame)])
    if figure is not None:
        from harness.output.report.sections.against import chart  # of the extra `figures`

        files.save_figure(chart(frame), figure)
        say(f"{figure} drawn")


def _page(frame: pd.DataFrame) -> Iterator[Part]:
    yield Heading(texts.answer(frame))
    for heading, table in texts.tables(frame):
        yield Heading(heading)
        yield TextTable(table, cut=("case",), dropped=DROPPED)
    yield from (*texts.LEGEND, *texts.notes(frame))


def _plain(row: dict[str, object]) -> dict[str, object]:
    """Return a row for JSON: a break-even of never is `"never"`."""
    return {
        name: "never" if isinstance(value, float) and math.isinf(value) else value
        for name, value in row.items()
    }
