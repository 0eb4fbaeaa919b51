"""`harness cache ship`: from process start to the first result, by every way to ship a program."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cache import app
from harness.cli.cache.options import (
    AsJson,
    Benchmarks,
    OneWorkload,
    Target,
    check_writable,
)
from harness.cli.cache.printing import print_report
from harness.cli.output import say
from harness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from harness.ship import routes as shipping
    from harness.ship import symbolic


@app.command()
def ship(
    workload: OneWorkload,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="Which case; the first one of those that match."),
    ] = None,
    symbolic: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="Instead: one jax.export for all sizes of this axis, and what each still costs.",
        ),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fresh processes per path.")] = 5,
    target: Target = "cpu",
    seed: Annotated[int | None, typer.Option(help="Seed of the order of the paths.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the paths into a .svg, .png or .html file."),
    ] = None,
    as_json: AsJson = False,
    benchmarks: Benchmarks = Path("benchmarks"),
) -> None:
    """Which way should I ship this? The time to the first result, and the bytes, by every way."""
    from harness.declare import discovery
    from harness.report.charts import check
    from harness.report.figures import shipping as figures
    from harness.ship import cases as subjects
    from harness.ship import routes as library
    from harness.ship import symbolic as sizes

    if figure is not None:  # before minutes of measuring
        if symbolic is not None:
            raise UsageError("--figure draws the paths, and --symbolic takes none: leave one out.")
        check(figure)
        check_writable("--figure", figure)
    chosen = discovery.one_workload(workload, benchmarks)
    cases = subjects.cases_of(chosen, case or [], target)
    if symbolic is not None:
        found = sizes.compare(chosen, cases, symbolic, processes, seed, say)
        if as_json:
            print_report(found)
        else:
            _print_symbolic(found)
        if found.reason:
            raise typer.Exit(ExitCode.NOTHING)
        if found.refused:
            raise typer.Exit(ExitCode.SOME_FAILED)
        return
    report = library.compare(chosen, cases[0], processes, seed, say)
    if as_json:
        print_report(report)
    else:
        _print(report)
    if figure is not None:
        figures.draw(report, figure)
        say(f"{figure} drawn")
    if any(row.status == "refused" for row in report.rows):
        raise typer.Exit(ExitCode.SOME_FAILED)


def _ms(seconds: float | None) -> str:
    return "" if seconds is None or math.isnan(seconds) else f"{seconds * 1e3:.1f}"


def _print(report: shipping.Report) -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness.cli.output import console
    from harness.ship.routes import median_step_s

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("path")
    for heading in (
        "first result ms", "min–max", "of jit", "process", "program", "trace+lower", "compile",
        "run", "bytes shipped",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    table.add_column("note", overflow="fold")
    plain_s = report.rows[0].median_s
    for row in report.rows:
        middle_s = row.median_s
        totals = [replicate.total_s for replicate in row.counted]
        table.add_row(
            row.path,
            _ms(middle_s),
            f"{_ms(min(totals))}–{_ms(max(totals))}" if totals else "",
            f"{middle_s / plain_s:.2f}" if middle_s and plain_s else "",
            _ms(median_step_s(row, "process", "import", "backend")),
            _ms(median_step_s(row, "program")),
            _ms(median_step_s(row, "trace", "lower")),
            _ms(median_step_s(row, "compile")),
            _ms(median_step_s(row, "run")),
            "" if row.shipped_bytes is None else f"{row.shipped_bytes:,}",
            escape(f"{row.status}: {row.reason}" if row.reason else ""),
        )
    heading = f"{report.workload} {report.case}".rstrip()
    console.print(_versions(heading, report.versions), markup=False, soft_wrap=True, style="bold")
    console.print(table)
    console.print(
        f"Medians in ms over {report.processes} processes per path, one at a time, in random order "
        f"(seed {report.seed}). process: interpreter, import jax, backend. Bytes: beside the "
        "source, which only jit needs.",
        markup=False,
        soft_wrap=True,
    )


def _versions(heading: str, versions: dict[str, str]) -> str:
    return f"{heading} · jax {versions['jax']} · Python {versions['python']}"


def _print_symbolic(report: symbolic.Report) -> None:
    import statistics

    from rich.table import Table

    from harness.cli.output import console
    from harness.ship import symbolic as sizes

    heading = _versions(f"{report.workload}, every {report.axis}", report.versions)
    console.print(heading, markup=False, soft_wrap=True, style="bold")
    if report.reason:
        text = f"It cannot be exported for all sizes at once: {report.reason}"
        console.print(text, markup=False, soft_wrap=True)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (report.axis, "trace+lower", "compile", "sum", "own program: sum", "status"):
        table.add_column(name, justify="right")
    for row in sizes.frame(report).to_dict("records"):
        building_s = row["shipped_trace_s"] + row["shipped_lower_s"]
        own_s = sum(row[f"direct_{stage}_s"] for stage in ("trace", "lower", "compile"))
        compile_s = row["shipped_compile_s"]
        table.add_row(
            str(row["size"]),
            *map(_ms, (building_s, compile_s, building_s + compile_s, own_s)),
            f"{row['status']}: {row['reason']}" if row["reason"] else row["status"],
        )
    console.print(table)
    size = f"{report.bytes:,} bytes" if report.bytes is not None else report.bytes_reason
    console.print(
        f"ms, medians over {report.processes} processes. One export of "
        f"{', '.join(report.shapes)}: {_ms(statistics.median(report.export_s))} ms, {size}.",
        markup=False,
        soft_wrap=True,
    )
