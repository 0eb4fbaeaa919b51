"""`harness ir`: the program of one case as traced, lowered or compiled, and what changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from harness.cli import options
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.ir.comparing import Comparison, Side

DIFFERENT = 1

HELP = """Print the program of one case, or how two programs differ.

\b
  harness ir Mlp                                   the optimised HLO
  harness ir Mlp --stage jaxpr                     as traced; stablehlo is as lowered
  harness ir Mlp --transform gradient              vmap, sharded, ... listed by it or not
  harness ir Mlp --target gpu:h200                 built for a GPU that is not here
  harness ir Mlp --facts                           fusions, flops, memory, ... as a table
  harness ir Mlp --source                          with the line that each part came from
  harness ir BlackScholes --case size=1024         one case of several

\b
What changed? The facts first, then the text:
  harness ir Mlp --diff transform:gradient
  harness ir Mlp --diff target:gpu:h200
  harness ir Mlp --diff commit:HEAD                since the last commit
  harness ir Mlp --diff records:v1.0..main         as measured; nothing is built
  harness ir BlackScholes --case size=1024 --diff case:size=65536

Without enough --case, it lists the cases there are. A process of its own builds the program, so
that the target decides its environment. In colour on a terminal, unless NO_COLOR is set.

\b
Exit codes: 0 fine; 1 they differ, with --exit-code; 2 wrong usage; 3 it cannot be built; 4 the
target is not here, or the records hold nothing to compare.
"""


def ir(
    workload: Annotated[
        str, typer.Argument(help="The workload, or an expression only it matches.")
    ],
    case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE", help="Which case (transform=gradient works too); repeat."
        ),
    ] = None,
    stage: Annotated[
        str, typer.Option(help="jaxpr (as traced), stablehlo (as lowered), hlo (as optimised).")
    ] = "hlo",
    transform: Annotated[
        str | None,
        typer.Option(
            help="forward, gradient, vmap, sharded, pmap, whether the workload lists it or not."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="What to build for: cpu, gpu, tpu, gpu:h200, ...")
    ] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Say where in the source each part comes from.")
    ] = False,
    facts: Annotated[
        bool, typer.Option("--facts", help="Print facts of the program instead of its text.")
    ] = False,
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Compare with case:AXIS=VALUE[,AXIS=VALUE], transform:NAME, target:NAME, "
            "commit:REV; or records:REV..REV.",
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="With --diff: end with 1 if the programs differ.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead.")
    ] = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    results: options.ResultsTree = Path("results"),
) -> None:
    """Print the program of one case, or how two programs differ."""
    from harness.ir import building, comparing

    building.check_stage(stage)
    kind, rest = comparing.parse(diff) if diff else ("", "")
    if source and (diff or facts):
        raise UsageError("--source adds places to a text; --diff and --facts leave them out.")
    if exit_code and not diff:
        raise UsageError("--exit-code says whether programs differ; add --diff.")
    with _sink(output) as write:
        if not diff:
            _show(write, workload, case, stage, transform, target, source, facts, benchmarks)
            return
        if kind == "records":
            given = [f"{n}={v}" for n, v in (("transform", transform), ("target", target)) if v]
            pairs: Iterable[tuple[Side, Side]] = _recorded(
                results, benchmarks, rest, workload, [*(case or []), *given], stage
            )
        else:
            chosen, one = _choose(workload, case, transform, target, benchmarks)
            with _progress() as on_step:
                pairs = [comparing.built(chosen, one, kind, rest, stage, on_step)]
        differ = False
        for number, (a, b) in enumerate(pairs):
            found = comparing.compare(a, b, stage)
            differ = differ or found.differ
            write(_lines(found, text=not facts, apart=number > 0))
    if exit_code and differ:
        raise typer.Exit(DIFFERENT)


def _choose(
    pattern: str, case: list[str] | None, transform: str | None, target: str | None, folder: Path
) -> tuple[Any, Any]:
    from harness.declare import discovery
    from harness.ir import choosing

    workload = discovery.one_workload(pattern, folder)
    return workload, choosing.one_case(workload, case or [], transform, target)


def _show(
    write: Callable[[Iterable[Any]], None],
    pattern: str,
    case: list[str] | None,
    stage: str,
    transform: str | None,
    target: str | None,
    source: bool,
    facts: bool,
    folder: Path,
) -> None:
    from harness.cli import highlighting
    from harness.ir import building

    workload, one = _choose(pattern, case, transform, target, folder)
    wanted = building.job(workload, one, "" if facts else stage, located=source, with_facts=facts)
    with _progress() as on_step:
        built = building.build(wanted, lambda step: on_step(wanted.label, step))
    if built.facts is None:
        write(highlighting.program(built.text))
    else:
        write([f"{wanted.label} · program {built.fingerprint}", _table(built.facts)])


def _recorded(
    results: Path, benchmarks: Path, revisions: str, pattern: str, choices: list[str], stage: str
) -> Iterator[tuple[Side, Side]]:
    from harness.cli.terminal import notes
    from harness.ir import comparing
    from harness.records.schema import Problems

    problems = Problems()
    # The commits are those of the benchmarks; without that folder, of the results.
    repository = benchmarks if benchmarks.is_dir() else results
    yield from comparing.from_records(
        results, repository, revisions, pattern, choices, stage, problems
    )
    if problems:
        notes.print(problems.summary(), markup=False)


def _table(facts: Any) -> Any:
    from rich.table import Table

    from harness.program import explained

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    for name, value, meaning in explained.rows(facts):
        table.add_row(name, value, meaning)
    return table


def _lines(found: Comparison, text: bool, apart: bool) -> Iterator[Any]:
    from rich.text import Text

    from harness.cli import highlighting

    if apart:
        yield ""
    yield Text(f"a: {found.a.label}", "bold")
    yield Text(f"b: {found.b.label}", "bold")
    yield found.verdict
    if found.facts:
        yield found.facts
    if text and found.text:
        yield ""
        yield from highlighting.difference(found.text)


@contextmanager
def _sink(output: Path | None) -> Iterator[Callable[[Iterable[Any]], None]]:
    """Give what lines, texts and tables are written with: in colour where that is seen."""
    from rich.console import Console

    from harness.cli.terminal import console

    shown = console

    with ExitStack() as stack:

        def write(things: Iterable[Any]) -> None:
            nonlocal shown
            if output is not None and shown is console:  # not before there is something to write
                file = stack.enter_context(_open(output))
                shown = Console(file=file, width=200, color_system=None, highlight=False)
            for thing in things:
                plain = shown.color_system is None or shown.no_color
                if plain and not hasattr(thing, "columns"):
                    print(str(thing), file=shown.file)
                else:
                    shown.print(thing, markup=False, soft_wrap=not hasattr(thing, "columns"))

        yield write


def _open(output: Path) -> TextIO:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return output.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from None


@contextmanager
def _progress() -> Iterator[Callable[[str, str], None]]:
    """Show on a terminal what is being built, and for how long; nothing elsewhere."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from harness.cli.terminal import notes

    columns = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(
        *columns, console=notes, transient=True, disable=not notes.is_terminal
    ) as progress:
        task = progress.add_task("starting")
        yield lambda label, step: progress.update(task, description=f"{label} · {step}")
