"""`harness show`: the table of stages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import (
    Format,
    Heading,
    Output,
    Part,
    TextTable,
    say,
    warnings_said,
    without_families,
)
from harness.errors import ExitCode
from harness.frame import asv_results, choose
from harness.frame.frame import PLACE, ordinary, place_text, rows_of
from harness.frame.load import everything
from harness.output import tables
from harness.stages.registry import LONG_COMPILE_S, OF_CALLS

OURS = "Value: median over processes; ±: half of its 95 % interval (6 processes or more)."
OF_ASV = "Value of asv's own files: asv's median of all samples; ±: half of asv's 99 % interval."
DROPPED = ("in_flight", "dispatch", "compute", "lower", "trace")
"""Stages that are left out, in this order, where the line is too short."""

NEXT = """\
Next:  asv publish && asv preview             graphs over commits
       harness show --all                     every commit and environment
       harness.load("results")                what was measured last, in pandas"""


@options.command(
    common="select case stage latest brief facts calls format_",
    latest=Option("--latest/--all", help="The newest commit and environment, or all."),
    brief=Option(help="One screen: a row per workload, the slowest compiles."),
    facts=Option(help="Also launches, fusions, flops, bytes, temporaries, calls."),
    calls=Option(
        help="Also the least, 10, 50 and 90 % of calls. And calls per second, waited for one by "
        "one and in flight."
    ),
)
def show(
    *,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    latest: bool = True,
    brief: bool = False,
    facts: bool = False,
    calls: bool = False,
    output: Output,
) -> None:
    r"""Print the table of stages.

    \b
      harness show                     what was measured last, on each machine
      harness show --brief             one screen
      harness show -s Gelu --facts     a workload, and what was built of it
      harness show --all --format csv  every commit and environment, all columns

    The columns of csv and json are those of docs/frame.md.
    Exit codes: 0 fine; 2 wrong usage; 4 nothing is there to show.
    """
    with warnings_said():
        frame = everything(results)  # warns where there is nothing
    if frame.empty:
        raise Exit(ExitCode.NOTHING)
    frame = ordinary(frame)
    if frame.empty:
        say(f"{results} holds comparisons only. `harness baselines -r {results}` shows them.")
        raise Exit(ExitCode.NOTHING)
    chosen = choose.rows(frame, filters)
    shown = choose.narrow(chosen, (), latest or brief)
    if brief:
        shown = choose.of_one_machine(shown)
        output.show(_brief(shown), shown)
        return
    page = (*_page(shown, facts, calls), *_elsewhere(chosen, shown))
    if output.format is not Format.markdown:
        page = (*page, *_values(shown), NEXT)
    output.show(page, shown)


def _page(frame: pd.DataFrame, facts: bool, calls: bool) -> Iterator[Part]:
    yield Heading(tables.longest_text(choose.of_one_machine(frame)))
    for heading, part in choose.by_origin(frame):
        yield Heading(heading)
        yield from stage_table(part)
        if facts:
            yield TextTable(tables.fact_table(part), cut=("axes",))
        if calls:
            yield TextTable(tables.call_table(part), cut=("axes",))


def _brief(frame: pd.DataFrame) -> Iterator[Part]:
    """Yield one screen: what takes longest, a row per workload, the slowest compiles."""
    yield Heading(tables.longest_text(frame))
    for heading, part in choose.by_origin(frame):
        yield heading
        yield TextTable(tables.workload_table(part))
        yield Heading("Slowest compiles")
        yield from tables.compile_texts(part, 3)
    yield "Times are medians over the cases of a workload. Each case, with intervals: harness show"


def _values(shown: pd.DataFrame) -> list[str]:
    """Return what values and intervals mean."""
    of_asv = shown["interval_level"] == asv_results.LEVEL
    ours = (shown["scenario"] != "") & ~of_asv
    return [OURS] * bool(ours.any() or not of_asv.any()) + [OF_ASV] * bool(of_asv.any())


def _elsewhere(chosen: pd.DataFrame, shown: pd.DataFrame) -> list[str]:
    """Return which other environments the commits that are shown were measured in."""
    commit = ["machine", "commit", "dirty"]
    ours = pd.MultiIndex.from_frame(shown[commit])
    rows = chosen[pd.MultiIndex.from_frame(chosen[commit]).isin(ours)]
    places = [dict.fromkeys(map(place_text, rows_of(each[PLACE]))) for each in (rows, shown)]
    others = [place for place in places[0] if place not in places[1]]
    return [f"Not shown: {', '.join(others)}; `harness show --all` has them."] if others else []


def _compact(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without intervals, and with shorter names."""
    table = tables.stage_table(frame.assign(low=math.nan, high=math.nan, p50_low=math.nan))
    return without_families(table)


def stage_table(frame: pd.DataFrame) -> Iterator[Part]:
    """Yield one row per case with a column per stage, and why values are lacking."""
    table = tables.stage_table(frame)
    yield TextTable(table, cut=("axes",), dropped=DROPPED, compact=_compact(frame))
    if called := [stage for stage in OF_CALLS if stage in table]:
        yield f"{', '.join(called)}: median of calls; `harness show --calls` has the least."
    if table.apply(lambda texts: texts.str.startswith("≥")).any(axis=None):
        yield "≥: the least call of a process, where its median is not known."
    note = (
        tables.process_text(frame),
        *tables.compile_texts(frame, 5, LONG_COMPILE_S),
        *tables.program_texts(frame),
    )
    yield from filter(None, [*note, tables.collected_text(frame), *tables.reason_texts(frame)])
