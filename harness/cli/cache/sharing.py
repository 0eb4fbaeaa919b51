"""`harness cache share`: several processes and one cache directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cache import app
from harness.cli.cache.options import AsJson, Benchmarks, Cases, OneWorkload
from harness.cli.cache.printing import print_report
from harness.cli.exit_codes import SOME_FAILED
from harness.cli.saying import say

if TYPE_CHECKING:
    from harness.cache.experiments import sharing


@app.command()
def share(
    workload: OneWorkload,
    case: Cases = None,
    processes: Annotated[
        int, typer.Option(min=2, help="Processes that know nothing of each other.")
    ] = 4,
    max_size: Annotated[
        int | None,
        typer.Option(min=0, metavar="BYTES", help="Bound the cache, which makes JAX lock it."),
    ] = None,
    as_json: AsJson = False,
    benchmarks: Benchmarks = Path("benchmarks"),
) -> None:
    """Who compiles, waits and writes when processes share a cache (on CPU, in a new directory)?"""
    from harness.cache.experiments import sharing as library
    from harness.cache.experiments import subjects
    from harness.declare import discovery

    chosen = discovery.one_workload(workload, benchmarks)
    cases = subjects.cases_of(chosen, case or [])
    report = library.share(chosen, cases, processes, max_size, say)
    if as_json:
        print_report(report)
    else:
        _print(report)
    problems = [p.problem for r in report.rounds for p in r.processes if p.problem]
    for problem in problems:
        say(problem)
    if problems or any(round_.reason for round_ in report.rounds):
        raise typer.Exit(SOME_FAILED)


def _print(report: sharing.Report) -> None:
    from rich.table import Table

    from harness.cache.experiments.sharing_tables import summary
    from harness.cli.terminal import console

    heading = f"{report.workload} · {len(report.cases)} cases · jax {report.versions['jax']}"
    console.print(heading, markup=False, soft_wrap=True, style="bold")
    rows = summary(report)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for position, name in enumerate(rows.columns):
        heading = name.replace("_s", " s").replace("_", " ")
        table.add_column(heading, justify="left" if position < 2 else "right")
    for row in rows.itertuples(index=False):
        table.add_row(*map(_cell, row), style="bold" if row.process == "all" else "")
    console.print(table)
    for round_ in report.rounds:
        if round_.reason:
            text = f"{round_.arrangement}, {round_.scenario}: {round_.reason}"
            console.print(text, markup=False, soft_wrap=True)
    console.print(
        "wasted: compilations minus distinct keys; repeated: compilations minus distinct cases. "
        "write lost: it compiled, and another process had written the entry already.",
        markup=False,
        soft_wrap=True,
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:  # NaN: says nothing of one process
            return ""
        return f"{value:.0f}" if value.is_integer() and value else f"{value:.3f}"
    return str(value)
