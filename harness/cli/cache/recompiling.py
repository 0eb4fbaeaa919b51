"""`harness cache recompiles`: which cases of a sweep share an executable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.cli.cache import app
from harness.cli.cache.options import (
    AsJson,
    Benchmarks,
    Cases,
    OneWorkload,
    Target,
)
from harness.cli.cache.printing import print_report
from harness.cli.exit_codes import SOME_FAILED

if TYPE_CHECKING:
    from harness.cache.experiments.recompiles import Map


@app.command()
def recompiles(
    workload: OneWorkload,
    case: Cases = None,
    target: Target = "cpu",
    as_json: AsJson = False,
    benchmarks: Benchmarks = Path("benchmarks"),
) -> None:
    """Which shapes, dtypes and static values force a new executable, and what does each cost?"""
    from harness.cache.experiments import recompiles as library
    from harness.cache.experiments import subjects
    from harness.declare import discovery

    chosen = discovery.one_workload(workload, benchmarks)
    found = library.recompiles(chosen, subjects.cases_of(chosen, case or [], target))
    if as_json:
        print_report(found)
    else:
        _print(found)
    if any(entry.problem for entry in found.entries):
        raise typer.Exit(SOME_FAILED)


def _print(found: Map) -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness.cli.terminal import console

    heading = f"{found.workload} · jax {found.versions['jax']}"
    console.print(heading, markup=False, soft_wrap=True, style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("case", "executable", "cost ms", "again ms", "why"):
        table.add_column(name, justify="right" if name.endswith("ms") else "left")
    for entry in found.entries:
        shared = f"the executable of {entry.shares_with}" if entry.shares_with else ""
        why = entry.reason or shared or "nothing in the signature is new"
        if entry.same_program_as:
            why += f" (XLA built the very program of {entry.same_program_as} again)"
        table.add_row(
            escape(entry.case),
            "new" if entry.new_executable else "shared",
            f"{entry.cost_s * 1e3:.1f}" if entry.new_executable else "",
            f"{entry.again_s * 1e3:.2f}",
            escape(f"{why}. {entry.problem}" if entry.problem else why),
        )
    console.print(table)
    new = [entry for entry in found.entries if entry.new_executable]
    console.print(
        f"{len(new)} executables for {len(found.entries)} cases, "
        f"{sum(entry.cost_s for entry in new):.3f} s to trace, lower and compile them. again: the "
        "same call in a second round, which built nothing."
        if not any(entry.problem for entry in found.entries)
        else "The events contradict what is marked above.",
        markup=False,
        soft_wrap=True,
    )
