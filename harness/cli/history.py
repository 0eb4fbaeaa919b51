"""`harness history`: where a series of commits or nights changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Filters, Option
from harness.cli.output import Heading, Output, Part, TextTable, say, warnings_said
from harness.errors import ExitCode
from harness.frame import choose
from harness.frame.arms import records_under
from harness.frame.load import everything
from harness.output import history as texts
from harness.output import inside as inside_texts
from harness.records import environment
from harness.records.units import counted
from harness.verdicts import inside
from harness.verdicts.error_rates import use_those_of
from harness.verdicts.history import history as change_points
from harness.verdicts.history import series

MOST = 10
"""So many series of two points are shown."""


@options.command(
    common="select stage since cuts format_ output",
    since=Option(
        metavar="NIGHT",
        help="Only changes since this night or day.",
    ),
    cuts=Option(
        help="Also where a series was cut. The workload, the effort or the machine changed."
    ),
)
def history(
    *,
    results: options.ReadResults = Path("results"),
    filters: Filters,
    since: str = "",
    cuts: bool = False,
    output: Output,
) -> None:
    r"""Where did a series of commits or nights change, and what else changed there?

    \b
      harness history                               every change, newest first
      harness history -s Attention --stage compile  of some workloads, one stage
      harness history --since 2026-11-01            only since that night
      harness history --format markdown -o week.md  to paste into an issue

    \b
    Reading a row:
      change    slower; faster; more or less, of a benchmark that is no time; environment: a stage
                that only runs or loads the program changed though it is the same, or the reference
                program changed as much; program: it changed, and no change of the time of compiling
                it shows; incomparable (--cuts): the workload, the effort or the machine changed.
                `new`: one night shows it so far, the next confirms it or it is gone. What
                Python's calls prove is confirmed at once.
      ratio     level after / level before; above 1 is slower.
      points    nights or commits that the levels before | after rest on.
      commits   last that is not changed..first that is: the cause lies in between.

    A series is one case and stage on one machine. A change of its time needs three points, two
    before it and one after; what counts prove needs two. What moved between the only two points of
    a series by more than counts is shown below, as seen once; `harness compare` has a verdict on
    it. Changes of time smaller than what counts in a stage (compile 5 %, execute 15 %, dispatch 25
    %; see docs/method.md) are not shown. Times are as measured, of trace, lower and compile in CPU
    seconds where they are known. The pass that a compile changed in is named where both ends of the
    step were measured with `harness run --inside`.

    \b
    Exit codes: 0 fine, with change points or without; 2 wrong usage; 4 no series has two points.
    """
    use_those_of(Path())
    since = environment.night(since)
    with warnings_said():
        frame = choose.rows(everything(results), filters)
    points = series(frame)
    if since:
        texts.check_since(points, since)
    changes = change_points(frame, cuts=cuts)
    once = texts.seen_once(points, changes, since)
    shown = texts.since(changes, since)
    compiles = inside.of_steps(shown, points, records_under(results))
    shown["inside"] = [
        inside_texts.text(compiles[at]) if at in compiles else "" for at in shown.index
    ]
    measured = points[points["value"].notna()]
    if shown.empty and not (measured.groupby(["series", "piece"]).size() > 1).any():
        cut = int((measured.groupby("series").size() > 1).sum())
        why = (
            "no case has two nights or commits. Measure again with `harness run --night NAME`, or "
        )
        why += "at another commit."
        if cut:
            why = f"in all {cut} series of several points the workload, the effort or the machine "
            why += "changed between each two: `harness history --cuts` lists where."
        say(f"{results}: {why}")
        raise Exit(ExitCode.NOTHING)
    output.show(_page(shown, since, texts.too_short(points), once), shown)
    if output.path is not None:
        say(f"{len(shown)} change points written to {output.path}")


def _page(changes: pd.DataFrame, since: str, too_short: str, once: pd.DataFrame) -> Iterator[Part]:
    if changes.empty:
        after = f" since {since}" if since else ""
        text = f"No change point{after}: counts prove none, and no step of times is as large as "
        yield f"{text}what counts in its stage. {too_short}".rstrip()
    else:
        yield from _changes(changes)
    if len(once):
        yield Heading(f"Seen once, {len(once)}: the next night tells whether it stays")
        yield TextTable(once[:MOST], left=once.columns, cut=("case",))
        if len(once) > MOST:
            yield f"{len(once) - MOST} smaller ones are left out."


def _changes(changes: pd.DataFrame) -> Iterator[Part]:
    often = changes["change"].value_counts()
    counts = ", ".join(f"{number} {change}" for change, number in often.items())
    yield Heading(f"{counted(len(changes), 'change point')}: {counts}.")
    rows = texts.table(changes)
    last = rows.columns[-1]
    dropped = (last, "points", "commits", "before → after")
    yield TextTable(rows, left=rows.columns, cut=(rows.columns[1], last), dropped=dropped)
    yield from texts.legend(changes)
