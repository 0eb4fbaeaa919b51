"""`harness compile`: what trace, lower and XLA do for one case, by pass, kernel and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pandas as pd
from click.exceptions import Exit

from harness import targets
from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Output, say
from harness.cli.progress import building
from harness.errors import ExitCode, HarnessError, UsageError, match_names
from harness.ir import build, growth, module
from harness.ir.build import one_case
from harness.jaxhooks import programs
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.lock import measuring
from harness.output.compile import script, unread_text
from harness.output.compile_page import branch_text, growth_page, page
from harness.output.report import compile_trace, files
from harness.profiles.inside import recorded, slowest_compiles
from harness.profiles.recorded import read
from harness.profiles.tracks import save
from harness.program.compiler import callers, causes, recording, structure
from harness.program.compiler.callers import CallBranch
from harness.program.compiler.inside import PassBranch
from harness.program.compiler.inside import inside as inside_of
from harness.program.kernels import written
from harness.records import environment
from harness.workload import discovery
from harness.workload.workload import name_of

COLUMNS = (
    "path",
    "name",
    "group",
    "count",
    "wall_s",
    "own_wall_s",
    "threads_s",
    "calls",
    "own_calls",
    "file",
    "line",
)
"""Of a row of the trees: those of passes, and behind them those of Python's calls."""


class NothingTold(HarnessError):
    """A back end has no events of what it does."""

    exit_code = ExitCode.NOTHING


@options.command(
    common="case target depth against figure tries",
    workload=Argument(
        help="The workload, or an expression only it matches; or a file with a module."
    ),
    program=Argument(metavar="[-- PROGRAM [ARG]...]", help="Of which WORKLOAD names a function."),
    case=Option(metavar="AXIS=VALUE", help="Which case; repeat."),
    transform=Option(help="forward, gradient, vmap, sharded, pmap."),
    target=Option(help="What to compile for, such as gpu:h200; `harness targets` lists all."),
    depth=Option(min=1, help="Levels of the trees; of Python's calls none without it."),
    least=Option(min=0, max=100, help="Percent of its stage that a row must have."),
    against=Option(metavar="AXIS", help="Compile every value of an axis; what grows with it?"),
    rounds=Option(min=1, max=100, help="With --against: compiles of each value."),
    tries=Option(
        "--try/--no-try",
        help="Try remedies that need no edit; compiles more often.",
    ),
    reproduce=Option(
        metavar="DIR", help="Write the module, and a script that compiles it with JAX alone."
    ),
    trace=Option(
        metavar="FILE",
        help="Write XLA's events as well, as they were, for Perfetto (ui.perfetto.dev) and "
        "chrome://tracing: .json or .json.gz.",
    ),
)
def compile(
    workload: str,
    program: list[str] | None = None,
    *,
    case: list[str] | None = None,
    transform: str | None = None,
    target: str | None = None,
    depth: int | None = None,
    least: float = 5.0,
    against: str | None = None,
    rounds: int = 3,
    tries: bool = True,
    figure: options.Figure = None,
    trace: Path | None = None,
    reproduce: Path | None = None,
    output: Output,
    benchmarks: options.Benchmarks = Path("benchmarks"),
) -> None:
    r"""Which pass, kernel and line do trace, lower and compile spend their time on?

    \b
      harness compile Mlp                        passes; kernels with their lines
      harness compile step -- python train.py    a function of any program
      harness compile Mlp --target gpu:h200      for a GPU that is not here
      harness compile Unrolled --against unroll  what grows with an axis, how fast
      harness compile Mlp --depth 8 --least 0.1  more rows: down to 0.1 %
      harness compile Mlp --figure mlp.html      a flame graph; also .svg, .png
      harness compile Mlp --trace mlp.json       XLA's events, for ui.perfetto.dev

    First comes what is known to make building slow, with its line and a remedy: large constants,
    unrolled loops, thousands of arguments, switches of many branches, functions that a library
    traces again and again. Of a workload it says what the remedy saves of lower and compile, where
    that was tried (constants as arguments, scans not unrolled, loops rolled into a scan), or why
    it was not. Ctrl-C ends the trying.

    One compile more is made for all this, in a process of its own, under XLA's own events. Wall: of
    the time that the compile took; a moment in which several threads work is shared among them, so
    that all rows sum to the whole. Threads: what all threads worked together. A kernel's line is
    that of its first operation, as XLA's metadata has it; XLA:CPU names no kernel while LLVM makes
    code of it, and XLA:GPU few, so those times are shown for all kernels together.

    Of trace and lower it counts Python's calls, in a pass of their own: by line of yours, and by
    the equation that JAX works on. Own: without what is inside. Time: a share of what the stage
    takes.

    A program after -- runs unchanged, once, and its output is its own: -o writes the page into a
    file. Of the functions whose name matches, it shows the one with the longest compile.

    \b
    Exit codes: 0 fine; 2 wrong usage; 3 it cannot be compiled; 4 the target is not here, its XLA
    reports nothing. Else the code of the program.
    """
    if figure is not None:
        files.check_figure(figure)
    if reproduce is not None:
        module.check_folder(reproduce)
    if program and (against or case or transform or target):
        raise UsageError("--case, --transform, --target and --against are for workloads.")
    if against is not None:
        if figure is not None or trace is not None:
            raise UsageError("--figure and --trace show one compile; --against makes many.")
        if reproduce is not None or module.file_of(workload):
            raise UsageError("--against is of workloads, and writes no module.")
        chosen = discovery.one_workload(workload, benchmarks)
        cases = growth.cases(chosen, against, case or [], transform, target)
        with measuring(say), building() as on_step:
            grown = growth.measure(chosen, cases, rounds, on_step)
        label = f"{name_of(chosen)} {cases[0][1].target}"
        rows = [msgspec.to_builtins(one) for one in grown]
        parts = growth_page(label, against, rounds, grown, least / 100)
        flat = [{**row.pop("values"), **row} for row in rows]
        output.show(parts, pd.DataFrame(flat), grown)
        return
    code = 0
    file = None if program else module.file_of(workload)
    place = target or (module.target_of(file) if file else "cpu")
    if program:
        label, made, code = _of_program(workload, program)
    elif file is not None:
        if case or transform or reproduce:
            raise UsageError("--case, --transform and --reproduce are not for a file.")
        with measuring(say):
            label, made = f"{workload} {place}", module.built(file, place)
    else:
        label, made, place = _of_workload(
            workload, benchmarks, case or [], transform, target, tries, reproduce is not None
        )
    if reproduce is not None:
        to = targets.find(place)
        variables = {**environment.flags(), **({} if program else module.environment(to))}
        versions = {**environment.versions(), **environment.plugins()}
        text = script(label, to, variables, versions)
        module.write(reproduce, made.text, text, to)
        say(f"python {reproduce / module.SCRIPT} compiles it alone")
    inside = made.inside
    assert inside is not None
    document = {
        "case": label,
        "program": made.fingerprint,
        **msgspec.to_builtins(inside),
        "python": [_told(stage) for stage in made.python],
        "causes": made.causes,
        "written_kernels": made.written,
    }
    if trace is not None:
        remedy = "Choose another place with --trace."
        say(f"{save(compile_trace.trace(made.events, label), trace, remedy):,} events in {trace}")
    if figure is not None:
        from harness.output.report.sections import compiles as drawing  # of the extra `figures`

        drawn = drawing.chart(inside, label, 0 if figure.suffix == ".html" else drawing.WIDTH)
        files.save_figure(drawn, figure)
        say(f"{figure} drawn")
    parts = page(label, made, depth, least / 100)
    trees: list[PassBranch | CallBranch] = [*made.python, inside.tree]
    rows = [row for tree in trees for row in _rows(tree)]
    output.show(parts, pd.DataFrame(rows, columns=COLUMNS).convert_dtypes(), document)
    if code:
        raise Exit(code)


def _of_workload(
    workload: str,
    benchmarks: Path,
    case: Sequence[str],
    transform: str | None,
    target: str | None,
    tries: bool,
    with_module: bool,
) -> tuple[str, build.BuiltTexts, str]:
    """Return what a case is called, what its building told, and its target."""
    chosen = discovery.one_workload(workload, benchmarks)
    one = one_case(chosen, case, transform, target)
    stage = "stablehlo" if with_module else ""
    wanted = build.job(
        chosen, one, stage, with_facts=with_module, with_inside=True, with_tries=tries
    )
    with measuring(say), building() as on_step:
        made = build.build(wanted, lambda step: on_step(wanted.label, step))
    if made.inside is None:
        raise NothingTold(
            f"{wanted.label}: XLA reported nothing of its compile for {one.target}. Its plugin "
            "has no events; --target cpu shows what XLA does for a CPU."
        )
    on_target = wanted.label if "target=" in wanted.label else f"{wanted.label} {one.target}"
    return on_target, made, target or one.target


def _of_program(function: str, words: Sequence[str]) -> tuple[str, build.BuiltTexts, int]:
    """Run a program; return its longest compile of a function by name, and its exit code."""
    command = programs.command_of(words, "harness compile train_step -- python train.py")
    with temporary_folder() as folder:
        ran = programs.run_profiled(command, Path(folder), 0, inside=True, reader=structure.READER)
        compiles = slowest_compiles(recorded(read(Path(folder)))) if ran.processes else []
        if ran.code:
            say(f"the program ended with {ran.code}.")
        if not compiles:
            raise NothingTold(f"{' '.join(words)}: no compile was recorded.")
        names = [one.built.function.name for one in compiles]
        wanted = match_names(function, names, "function that the program compiled")
        first = next(one for one in compiles if one.built.function.name in wanted)
        events = recording.read(first.path)
        inside = inside_of(events, first.text)
        stages_s = first.stages_s
        made = build.BuiltTexts(first.module, inside=inside, events=events, stages_s=stages_s)
        if inside is None:
            raise NothingTold(f"{first.name}: XLA reported nothing of its compile.")
        if first.structure:
            build_s = inside.wall_s + sum(stages_s.values())
            structured = causes.decoded(first.structure)
            made.causes = causes.causes(structured, inside, build_s)
            made.written = [*written(first.text, structured.kernels)]
        else:
            say(unread_text(first.name, first.failures))
    return first.name, made, ran.code


def _told(stage: CallBranch) -> dict[str, object]:
    """Return who makes a stage's calls, in every way to sum them."""
    sums = (callers.lines, callers.functions, callers.primitives)
    tables = {each.__name__: each(stage) for each in sums}
    return {"stage": stage.name, "calls": stage.calls, "tree": stage, **tables}


def _rows(branch: PassBranch | CallBranch, path: str = "") -> Iterator[dict[str, object]]:
    """Yield a tree, a row a name and place."""
    path = f"{path} > {branch_text(branch)}".removeprefix(" > ")
    fields = msgspec.structs.asdict(branch)
    yield {"path": path, **{name: value for name, value in fields.items() if name != "inside"}}
    for each in branch.inside:
        yield from _rows(each, path)
