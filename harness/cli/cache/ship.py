"""`harness cache ship`: from process start to the first result, by every way to ship a program."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import click
import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.lazy import Command
from harness.cli.options import Argument, Benchmarks, Option
from harness.cli.output import Heading, Output, Part, TextTable, check_writable, say
from harness.declare import discovery
from harness.engine.lock import measuring
from harness.errors import ExitCode, UsageError
from harness.report import files
from harness.ship import cases, own_program, routes
from harness.ship import symbolic as sizes
from harness.watch import programs


class _WithProgram(Command):
    """Keeps `--` among the words, which tells a program from a workload."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)


@options.command(
    cls=_WithProgram,
    words=Argument(
        metavar="WORKLOAD | [FUNCTION] -- PROGRAM [ARG]...",
        help="The workload, or an expression only it matches; or a command, a .py file, "
        "-m MODULE or -c CODE after --, and before it which of its jitted functions.",
    ),
    case=Option(metavar="AXIS=VALUE", help="Which case; the first one of those that match."),
    symbolic=Option(
        metavar="AXIS",
        help="Instead: one jax.export for all sizes of this axis, and what each still costs.",
    ),
    processes=Option(min=1, help="Fresh processes per path."),
    target=Option(help="Where a workload runs: cpu, gpu, tpu.  [default: cpu]"),
    seed=Option(help="Seed of the order of the paths."),
    figure=Option(metavar="FILE", help="Draw the paths into a .svg, .png or .html file."),
)
def ship(
    *,
    words: list[str],
    case: list[str] | None = None,
    symbolic: str | None = None,
    processes: int = 5,
    target: str | None = None,
    seed: int | None = None,
    figure: Path | None = None,
    benchmarks: Benchmarks = Path("benchmarks"),
    output: Output,
) -> None:
    r"""Which way should I ship this? The time to the first result, and the bytes, by every way.

    \b
      harness cache ship MultiHeadAttention             a workload
      harness cache ship -- python train.py --steps 1   a program: its dearest jitted function
      harness cache ship train_step -- python train.py  one that is named

    A program runs 5 times and --processes times by each of 7 paths: let it do as little as a start
    needs. What it prints is not shown.

    Exit codes: 0 fine; 2 wrong usage; 3 a path was taken and not proven, or the program failed; 4
    there is nothing to ship.
    """
    if figure is not None:  # before minutes of measuring
        if symbolic is not None:
            raise UsageError("--figure draws the paths, and --symbolic takes none: leave one out.")
        files.check_figure(figure)
        check_writable("--figure", figure)
    if "--" in words:
        if case or symbolic is not None or target is not None:
            raise UsageError("--case, --symbolic and --target are for workloads.")
        at = words.index("--")
        if at > 1:
            raise UsageError(
                f"Expected one function before --; got {' '.join(words[:at])}. For example: "
                f"{_EXAMPLE}"
            )
        command = programs.command_of(words[at + 1 :], _EXAMPLE)
        with measuring(say):
            report = own_program.compare(command, "".join(words[:at]), processes, seed, say)
        _show(report, figure, output)
        return
    if len(words) > 1:
        raise UsageError(
            f"Expected one workload, or a program after --; got {' '.join(words)}. For example: "
            f"{_EXAMPLE}"
        )
    chosen = discovery.one_workload(words[0], benchmarks)
    known = cases.cases_of(chosen, case or [], target or "cpu")
    if symbolic is not None:
        with measuring(say):
            export = sizes.compare(chosen, known, symbolic, processes, seed, say)
        output.show(_export_page(export), sizes.medians(export), export)
        if export.reason or export.refused:
            raise Exit(ExitCode.NOTHING if export.reason else ExitCode.SOME_FAILED)
        return
    with measuring(say):
        report = routes.compare(chosen, known[0], processes, seed, say)
    _show(report, figure, output)


_EXAMPLE = "harness cache ship train_step -- python train.py"


def _show(report: routes.RoutesReport, figure: Path | None, output: Output) -> None:
    output.show(_page(report), report.rows, report)
    if figure is not None:
        from harness.report.figures import shipping  # of the extra `figures`

        files.save_figure(shipping(report), figure)
        say(f"{figure} drawn")
    if any(row.status == "refused" for row in report.rows):
        raise Exit(ExitCode.SOME_FAILED)


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.1f}"


def _heading(text: str, versions: dict[str, str]) -> Heading:
    return Heading(f"{text} · jax {versions['jax']} · Python {versions['python']}")


_COLUMNS = {
    "process": ("process", "import", "backend"),
    "program": ("program",),
    "trace+lower": ("trace", "lower"),
    "compile": ("compile",),
    "run": ("run",),
    "until the step": ("before",),
    "step": ("step",),
}


def _page(report: routes.RoutesReport) -> Iterator[Part]:
    plain_s = report.rows[0].median_s()
    taken = {step for row in report.rows for one in row.counted for step in one.steps_s}
    columns = {name: steps for name, steps in _COLUMNS.items() if taken.intersection(steps)}
    rows = []
    for row in report.rows:
        middle_s = row.median_s()
        totals = [replicate.total_s for replicate in row.counted]
        shown = {
            "path": row.path,
            "first result ms": _ms(middle_s),
            "min–max": f"{_ms(min(totals))}–{_ms(max(totals))}" if totals else "",
            "of jit": f"{middle_s / plain_s:.2f}" if middle_s and plain_s else "",
            **{name: _ms(row.median_s(*steps)) for name, steps in columns.items()},
        }
        if "step" in taken:
            counted = row.counted
            compiling_s = [one.compile_s for one in counted if one.compile_s is not None]
            shown["compiling"] = _ms(statistics.median(compiling_s)) if compiling_s else ""
            shown["hits"] = f"{counted[-1].hits} of {counted[-1].compiles}" if counted else ""
        shown["bytes shipped"] = "" if row.shipped_bytes is None else f"{row.shipped_bytes:,}"
        shown["note"] = f"{row.status}: {row.reason}" if row.reason else ""
        rows.append(shown)
    yield _heading(f"{report.workload} {report.case}".rstrip(), report.versions)
    yield TextTable(pd.DataFrame(rows), left=("note",), wrapped=("note",))
    if "step" in taken:
        about = "compiling: all that is compiled, or loaded, until the step's end"
        need = "; each path needs it"
    else:
        about, need = "process: interpreter, import jax, backend", ", which only jit needs"
    yield (
        f"Medians in ms over {report.processes} processes per path, one at a time, in random order "
        f"(seed {report.seed}). {about}. Bytes: beside the source{need}."
    )


def _export_page(report: sizes.SymbolicReport) -> Iterator[Part]:
    yield _heading(f"{report.workload}, every {report.axis}", report.versions)
    if report.reason:
        yield f"It cannot be exported for all sizes at once: {report.reason}"
        return
    rows = []
    for row in sizes.medians(report):
        known = bool(row.shipped)
        status = "ok" if known else "refused"
        rows.append(
            {
                report.axis: str(row.size),
                "trace+lower": _ms(row.shipped["trace"] + row.shipped["lower"]) if known else "",
                "compile": _ms(row.shipped["compile"]) if known else "",
                "sum": _ms(sum(row.shipped.values())) if known else "",
                "own program: sum": _ms(sum(row.direct.values())) if known else "",
                "status": f"{status}: {row.refused}" if row.refused else status,
            }
        )
    yield TextTable(pd.DataFrame(rows), wrapped=("status",))
    size = f"{report.bytes:,} bytes" if report.bytes is not None else report.bytes_reason
    yield (
        f"ms, medians over {report.processes} processes. One export of "
        f"{', '.join(report.shapes)}: {_ms(statistics.median(report.export_s))} ms, {size}."
    )
