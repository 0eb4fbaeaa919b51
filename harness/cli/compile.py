"""`harness compile`: what XLA does in one compile, by pass, kernel and line."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import pandas as pd
import typer

from harness.cli import options
from harness.cli.output import Heading, Output, Part, TextTable, say
from harness.cli.progress import building
from harness.declare import discovery
from harness.errors import ExitCode, HarnessError
from harness.ir import build
from harness.ir.case import one_case
from harness.profiles.trace import save
from harness.program.compiler.groups import REST
from harness.program.compiler.inside import Inside, PassBranch
from harness.records.units import seconds_text
from harness.report import compile_trace, files

HELP = """Say what XLA does while it compiles one case: by pass, by kernel, by line of yours.

\b
  harness compile Mlp                        the tree of passes, and the kernels with their lines
  harness compile Mlp --target gpu:h200      compiled for a GPU that is not here
  harness compile Mlp --target tpu:v5e --transform gradient
  harness compile Mlp --depth 8 --least 0.1  more of the tree, down to 0.1 % of the compile
  harness compile Mlp --figure mlp.html      a flame graph to look into; .svg and .png, too
  harness compile Mlp --trace mlp.json       XLA's events one by one, for ui.perfetto.dev
  harness compile Mlp --format json          all of it

One compile more is made for it, in a process of its own, under XLA's own events. Wall: of the time
that the compile took; a moment in which several threads work is shared among them, so that all rows
sum to the whole. Threads: what all threads worked together. A kernel's line is that of its first
operation, as XLA's metadata has it; XLA:CPU names no kernel while LLVM makes code of it, and
XLA:GPU few, so those times are told of all kernels together.

\b
Exit codes: 0 fine; 2 wrong usage; 3 it cannot be compiled; 4 the target is not here, or its XLA
tells nothing.
"""

MOST_KERNELS = 15
"""So many are shown; `--format json` has all."""


class NothingTold(HarnessError):
    """A back end has no events of what it does."""

    exit_code = ExitCode.NOTHING


@options.command(HELP, no_args_is_help=True)
def compile(
    workload: Annotated[
        str, typer.Argument(help="The workload, or an expression only it matches.")
    ],
    *,
    case: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=VALUE", help="Which case; repeat.")
    ] = None,
    transform: Annotated[
        str | None, typer.Option(help="forward, gradient, vmap, sharded, pmap.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="What to compile for: cpu, gpu, tpu, gpu:h200, ...")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Levels of the tree that are shown.")] = 6,
    least: Annotated[
        float, typer.Option(min=0, max=100, help="Percent of the compile that a row must have.")
    ] = 1.0,
    figure: options.Figure = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write XLA's events as well, as they were, for Perfetto (ui.perfetto.dev) and "
            "chrome://tracing: .json or .json.gz.",
        ),
    ] = None,
    output: Output,
    benchmarks: options.Benchmarks = Path("benchmarks"),
) -> None:
    """Say what XLA does while it compiles one case."""
    if figure is not None:
        files.check_figure(figure)
    chosen = discovery.one_workload(workload, benchmarks)
    one = one_case(chosen, case or [], transform, target)
    wanted = build.job(chosen, one, "", with_inside=True)
    with building() as on_step:
        made = build.build(wanted, lambda step: on_step(wanted.label, step))
    inside = made.inside
    if inside is None:
        raise NothingTold(
            f"{wanted.label}: XLA told nothing of its compile for {one.target}. Its plugin has no "
            "events; --target cpu shows what XLA does for a CPU."
        )
    document = {"case": wanted.label, "program": made.fingerprint, **msgspec.to_builtins(inside)}
    label = f"{wanted.label} {one.target}"
    if trace is not None:
        remedy = "Choose another place with --trace."
        say(f"{save(compile_trace.trace(made.events, label), trace, remedy):,} events in {trace}")
    if figure is not None:
        from harness.report.figures import compile as drawing  # of the extra `figures`

        drawn = drawing.chart(inside, label, 0 if figure.suffix == ".html" else drawing.WIDTH)
        files.save_figure(drawn, figure)
        say(f"{figure} drawn")
    parts = _page(label, inside, depth, least / 100)
    output.show(parts, pd.DataFrame(_rows(inside.tree)), document)


def _rows(branch: PassBranch, path: str = "") -> Iterator[dict[str, object]]:
    """Yield the tree, a row a name and place."""
    path = f"{path} > {branch.name}" if path else branch.name
    fields = msgspec.structs.asdict(branch)
    yield {"path": path, **{name: value for name, value in fields.items() if name != "inside"}}
    for each in branch.inside:
        yield from _rows(each, path)


def _page(label: str, inside: Inside, depth: int, least: float) -> Iterator[Part]:
    yield f"{label}: {_answer(inside)}"
    yield Heading("Where the time goes")
    yield _groups(inside)
    yield Heading("Passes of XLA")
    yield _tree(inside, depth, least)
    yield from _kernels(inside)


def _answer(inside: Inside) -> str:
    """Return the one sentence that says most."""
    most = max(
        (one for one in inside.groups if one.name != REST), key=lambda one: one.wall_s, default=None
    )
    said = f"compiled in {seconds_text(inside.wall_s)}"
    if most is not None:
        said += (
            f", {_percent(most.wall_s / inside.wall_s)} of it {_group_text(most.name, most.part)}"
        )
    return f"{said}. {_percent(inside.covered)} of the time is in events that XLA names."


def _group_text(name: str, part: str) -> str:
    return f"{name}: {part}" if part else name


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.0095 else f"{share * 100:.1f} %"


def _groups(inside: Inside) -> TextTable:
    rows = [
        {
            "group": _group_text(one.name, one.part),
            "wall": seconds_text(one.wall_s),
            "share": _percent(one.wall_s / inside.wall_s),
            "threads": seconds_text(one.threads_s),
        }
        for one in inside.groups
    ]
    return TextTable(pd.DataFrame(rows).astype("str"))


def _tree(inside: Inside, depth: int, least: float) -> TextTable:
    rows: list[dict[str, str]] = []

    def add(branch: PassBranch, level: int) -> None:
        if level >= depth or branch.wall_s < least * inside.wall_s:
            return
        times = f" × {branch.count}" if branch.count > 1 else ""
        rows.append(
            {
                "pass": "  " * level + branch.name + times,
                "wall": seconds_text(branch.wall_s),
                "share": _percent(branch.wall_s / inside.wall_s),
                "own": seconds_text(branch.own_wall_s),
                "threads": seconds_text(branch.threads_s),
            }
        )
        for each in branch.inside:
            add(each, level + 1)

    add(inside.tree, 0)
    return TextTable(pd.DataFrame(rows), wrapped=("",))


def _kernels(inside: Inside) -> Iterator[Part]:
    named = [kernel for kernel in inside.kernels if kernel.name]
    if not inside.kernels:
        return
    yield Heading("Kernels")
    rows = [
        {
            "kernel": kernel.name,
            "line": _line(kernel.file, kernel.line),
            "wall": seconds_text(kernel.wall_s),
            "operation": kernel.op_name.partition("/")[2],
        }
        for kernel in named[:MOST_KERNELS]
    ]
    if rows:
        yield TextTable(pd.DataFrame(rows), left=("operation",), wrapped=("operation",))
    if len(named) > MOST_KERNELS:
        more = sum(kernel.wall_s for kernel in named[MOST_KERNELS:])
        yield f"{len(named) - MOST_KERNELS} more kernels: {seconds_text(more)} of wall time."
    unnamed = [kernel.wall_s for kernel in inside.kernels if not kernel.name]
    if unnamed:
        yield (
            f"{len(unnamed)} kernels that XLA does not name: {seconds_text(sum(unnamed))} of wall "
            f"time, {seconds_text(max(unnamed))} the dearest."
        )
    lines: dict[str, float] = defaultdict(float)
    for kernel in named:
        if kernel.file:
            lines[f"{_line(kernel.file, kernel.line)} {kernel.function}"] += kernel.wall_s
    if lines:
        yield Heading("Lines, by the named kernels that begin there")
        ordered = sorted(lines.items(), key=lambda item: -item[1])[:MOST_KERNELS]
        yield TextTable(
            pd.DataFrame(
                [
                    {"line": line, "wall of its kernels": seconds_text(wall_s)}
                    for line, wall_s in ordered
                ]
            )
        )


def _line(file: str, line: int) -> str:
    if not file:
        return ""
    near = os.path.relpath(file)
    return f"{file if near.startswith('..') else near}:{line}"
