"""Where the command line prints, and the tables of what was found and measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from harness.declare.discovery import Found
from harness.declare.workload import enumerate_cases, name_of
from harness.engine.sweeping import Context, Outcome
from harness.records.store import store_path
from harness.targets import Sighting

if TYPE_CHECKING:
    import pandas as pd

MOST_RETRIED = 5
"""So many records that were begun more than once are told one by one."""

console = Console(highlight=False)
notes = Console(stderr=True, highlight=False)


def _width(console: Console) -> None:
    """Give tables room where there is no terminal to ask: a file or a pipe does not wrap."""
    if not console.is_terminal:
        console.width = 200


_width(console)
_width(notes)


def print_workloads(found: Found) -> None:
    """Print a row per workload."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("workload", "cases", "axes", "shows"):
        table.add_column(heading, overflow="fold")
    for workload in found.workloads:
        cases = [case for case in enumerate_cases(workload) if case.target == workload.targets[0]]
        axes = {**workload.sweep, "transform": workload.transforms}
        if workload.precisions:
            axes["precision"] = workload.precisions
        text = "; ".join(
            f"{axis}: {', '.join(map(str, values))}"
            for axis, values in axes.items()
            if axis != "transform" or tuple(values) != ("forward",)
        )
        first = (workload.__doc__ or "").strip().partition("\n")[0]
        table.add_row(*map(_plain, (name_of(workload), str(len(cases)), text, first)))
    console.print(table)


def print_targets(sightings: Sequence[Sighting]) -> None:
    """Print a row per target."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("target", "here", "devices", "what"):
        table.add_column(heading, overflow="fold")
    for sighting in sightings:
        what = ": ".join(filter(None, (sighting.what, sighting.lacking)))
        table.add_row(
            sighting.name,
            "yes" if sighting.here else "no",
            str(sighting.devices or ""),
            _plain(what),
        )
    console.print(table)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def print_outcome(outcome: Outcome, context: Context, fleet: bool = False) -> None:
    """Say what a sweep did, here or on a fleet, and where to look next."""
    if outcome.problems:
        notes.print(outcome.problems.summary(), markup=False)
    from harness.frame import choose
    from harness.frame.load import frame_of

    frame = choose.ordinary(frame_of(outcome.records))
    if not frame.empty:
        print_table(frame)
    lines = [
        f"{outcome.measured} measured, {outcome.reused} measured before and reused, "
        f"{len(outcome.failed)} failed or refused."
    ]
    if outcome.wide:
        some = "; ".join(outcome.wide[:5]) + (" ..." if len(outcome.wide) > 5 else "")
        lines.append(
            f"{len(outcome.wide)} case(s) reached the limit of processes with an interval still "
            f"wider than 5 %: {some}"
        )
    lines += _fleet_lines(outcome, context) if fleet else [f"Records: {context.store.path}"]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _fleet_lines(outcome: Outcome, context: Context) -> list[str]:
    """Say which machines measured, what was begun again, and where the records of each are."""
    lines = [
        f"retried: {record.workload} {' '.join(f'{k}={v}' for k, v in record.axes.items())}, "
        f"process {record.replicate.rpartition('#')[2]}: {'; '.join(record.retries)}"
        for record in outcome.retried[:MOST_RETRIED]
    ]
    if outcome.retried:
        lines.insert(0, f"{len(outcome.retried)} record(s) had to be begun more than once:")
    if len(outcome.retried) > MOST_RETRIED:
        lines.append("...")
    found = {
        (r.machine, store_path(context.results, r.machine, r.commit, r.env, r.night))
        for r in outcome.records
    }
    machines = sorted({machine for machine, _ in found})
    lines.append(f"{len(machines)} machine(s): {', '.join(machines)}")
    lines += [f"Records: {path}" for _, path in sorted(found)]
    return lines


def print_stages(frame: pd.DataFrame, select: list[str], latest: bool, facts: bool = False) -> None:
    """Print the table of stages of a frame, newest commit and environment only if `latest`.

    `facts` adds the table of what was built.
    """
    from harness.frame import choose, tables

    shown = choose.narrow(choose.ordinary(frame), select, latest)
    for heading, part in choose.by_origin(shown):
        console.print(heading, markup=False, soft_wrap=True, style="bold")
        print_table(part)
        if facts:
            print_rows(tables.fact_table(part))
    console.print(
        "Value: median over processes; ±: half of its 95 % interval (6 processes or more).\n"
        "Next:  asv publish && asv preview             graphs over commits\n"
        "       harness show --all                     every commit and environment\n"
        '       harness.load("results")                the same rows as a pandas frame, in Python',
        markup=False,
        soft_wrap=True,
    )


def print_table(frame: pd.DataFrame) -> None:
    """Print one row per case, one column per stage."""
    from harness.frame import tables

    print_rows(tables.stage_table(frame))
    for line in filter(None, [tables.process_text(frame), *tables.reason_texts(frame)]):
        console.print(line, markup=False, soft_wrap=True)


def print_rows(rows: pd.DataFrame) -> None:
    """Print a frame of text: workload and axes to the left, numbers to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for position, heading in enumerate(rows.columns):
        table.add_column(
            str(heading), justify="left" if position < 2 else "right", no_wrap=position != 1
        )
    for row in rows.itertuples(index=False):
        table.add_row(*(_plain(str(cell)) for cell in row))
    console.print(table)
