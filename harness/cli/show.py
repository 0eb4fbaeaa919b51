"""`harness show`: the table of stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import Format, Heading, Output, Part, TextTable, say, warnings_said
from harness.errors import ExitCode
from harness.frame import choose, tables
from harness.frame.frame import ordinary
from harness.frame.load import everything
from harness.stages.registry import OF_CALLS

NEXT = """\
Value: median over processes; ±: half of its 95 % interval (6 processes or more).
Next:  asv publish && asv preview             graphs over commits
       harness show --all                     every commit and environment
       harness.load("results")                what was measured last, in pandas"""


@options.command(
    latest=Option(
        "--latest/--all", help="Only what was measured last, or every commit and environment."
    ),
    facts=Option(help="Also what was built: launches, fusions, flops, bytes, temporaries, calls."),
    calls=Option(
        help="Also how calls were distributed: least, 10, 50 and 90 %, and calls per second, "
        "waited for one by one and in flight."
    ),
)
def show(
    *,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    latest: bool = True,
    facts: bool = False,
    calls: bool = False,
    output: Output,
) -> None:
    r"""Print the table of stages.

    \b
      harness show                       what was measured last, on each machine
      harness show -s Gelu --facts       some workloads, and what was built of them
      harness show --all --format csv    every commit and environment, all columns

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
    shown = choose.narrow(choose.rows(frame, filters), (), latest)
    page = _page(shown, facts, calls)
    output.show(page if output.format is Format.markdown else (*page, NEXT), shown)


def _page(frame: pd.DataFrame, facts: bool, calls: bool) -> Iterator[Part]:
    yield Heading(tables.longest_text(choose.of_one_machine(frame)))
    for heading, part in choose.by_origin(frame):
        yield Heading(heading)
        yield from stage_table(part)
        if facts:
            yield TextTable(tables.fact_table(part))
        if calls:
            yield TextTable(tables.call_table(part))


def stage_table(frame: pd.DataFrame) -> Iterator[Part]:
    """Yield one row per case with a column per stage, and why values are lacking."""
    table = tables.stage_table(frame)
    yield TextTable(table)
    if called := [stage for stage in OF_CALLS if stage in table]:
        yield f"{', '.join(called)}: median of calls; `harness show --calls` has the least."
    if table.apply(lambda texts: texts.str.startswith("≥")).any(axis=None):
        yield "≥: the least call of a process, where its median is not known."
    said = tables.process_text(frame), *tables.slow_texts(frame), *tables.program_texts(frame)
    yield from filter(None, [*said, tables.collected_text(frame), *tables.reason_texts(frame)])
