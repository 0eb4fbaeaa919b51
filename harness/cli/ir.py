"""`harness ir`: the program of one case as traced, lowered or compiled, and what changed it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.exceptions import Exit
from rich.table import Table
from rich.text import Text

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Heading, Output, Part, notes, print_page
from harness.cli.progress import building
from harness.errors import ExitCode, UsageError, find_name
from harness.ir import build, comparison
from harness.ir.build import one_case
from harness.ir.comparison import ProgramSide
from harness.output.compile_page import written_kernels
from harness.output.ir import verdict_text
from harness.program import difference
from harness.records.printable import printable
from harness.records.schema import Problems
from harness.workload import discovery
from harness.workload.workload import Case, Workload


@options.command(
    common="case stage target facts diff source output",
    workload=Argument(help="The workload, or an expression only it matches."),
    case=Option(metavar="AXIS=VALUE", help="Which case (transform=gradient works too); repeat."),
    stage=Option(help="jaxpr (as traced), stablehlo (as lowered), hlo (as optimised)."),
    transform=Option(
        help="forward, gradient, vmap, sharded, pmap, whether the workload lists it or not."
    ),
    target=Option(help="What to build for, such as gpu:h200; `harness targets` lists all."),
    source=Option(help="Say where in the source each part comes from."),
    facts=Option(help="Print its facts instead of its text."),
    diff=Option(
        metavar="WHAT",
        help="Compare with case:AXIS=VALUE[,AXIS=VALUE], transform:NAME, target:NAME, "
        "commit:REV; or records:REV..REV.",
    ),
    exit_code=Option(help="With --diff: end with 1 if the programs differ."),
)
def ir(
    workload: str,
    case: list[str] | None = None,
    stage: str = "hlo",
    transform: str | None = None,
    target: str | None = None,
    source: bool = False,
    facts: bool = False,
    diff: str | None = None,
    exit_code: bool = False,
    output: options.OutputFile = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    results: options.ResultsTree = Path("results"),
) -> None:
    r"""Print the program of one case, or how two programs differ.

    \b
      harness ir Mlp                         the optimised HLO
      harness ir Mlp --stage jaxpr           as traced; stablehlo: as lowered
      harness ir Mlp --target gpu:h200       built for a GPU that is not here
      harness ir Mlp --facts                 fusions, flops, memory as a table
      harness ir Mlp --diff commit:HEAD      what changed since the last commit

    \b
    What changed? The facts first, then the text:
      harness ir Mlp --diff transform:gradient
      harness ir Mlp --diff target:gpu:h200
      harness ir Mlp --diff records:v1.0..main         as measured; nothing is built
      harness ir BlackScholes --case size=1024 --diff case:size=65536

    Without enough --case, it lists the cases there are. A process of its own builds the program, so
    that the target decides its environment. In colour on a terminal, unless NO_COLOR is set.

    \b
    Exit codes: 0 fine; 1 they differ, with --exit-code; 2 wrong usage; 3 it cannot be built; 4 the
    target is not here, or the records hold nothing to compare.
    """
    stage = find_name(stage, build.STAGES, "stage of a program")
    if source and (diff or facts):
        raise UsageError("--source adds places to a text; --diff and --facts leave them out.")
    if exit_code and not diff:
        raise UsageError("--exit-code says whether programs differ; add --diff.")
    out = Output(path=output)
    if not diff:
        chosen, one = _choose(workload, case, transform, target, benchmarks)
        out.page(_program(chosen, one, stage, source, facts))
        return
    kind, rest = comparison.parse(diff)
    pairs: Iterator[tuple[ProgramSide, ProgramSide]]
    if kind == "records":
        given = [f"{n}={v}" for n, v in (("transform", transform), ("target", target)) if v]
        choices = [*(case or []), *given]
        pairs = _recorded(results, benchmarks, rest, workload, choices, stage)
    else:
        chosen, one = _choose(workload, case, transform, target, benchmarks)
        with building() as on_step:
            pairs = iter([comparison.built(chosen, one, kind, rest, stage, on_step)])
    differ: list[bool] = []
    out.page(_differences(pairs, stage, facts, differ))
    if exit_code and any(differ):
        raise Exit(ExitCode.WORSE)


def _choose(
    pattern: str, case: list[str] | None, transform: str | None, target: str | None, folder: Path
) -> tuple[type[Workload], Case]:
    workload = discovery.one_workload(pattern, folder)
    return workload, one_case(workload, case or [], transform, target)


def _program(
    workload: type[Workload], case: Case, stage: str, source: bool, facts: bool
) -> Iterator[Part]:
    wanted = build.job(workload, case, "" if facts else stage, located=source, with_facts=facts)
    with building() as on_step:
        made = build.build(wanted, lambda step: on_step(wanted.label, step))
    if made.facts is None:
        yield from coloured(made.text)
    else:
        yield f"{wanted.label} · program {made.fingerprint}"
        yield _table(made.facts)
        yield from written_kernels(made.written, ())


def _recorded(
    results: Path, benchmarks: Path, revisions: str, pattern: str, choices: list[str], stage: str
) -> Iterator[tuple[ProgramSide, ProgramSide]]:
    problems = Problems()
    # The commits are those of the benchmarks; without that folder, of the results.
    repository = benchmarks if benchmarks.is_dir() else results
    yield from comparison.from_records(
        results, repository, revisions, pattern, choices, stage, problems
    )
    if problems:
        print_page([problems.summary()], notes)


def _table(facts: Any) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    for name, value, meaning in difference.rows(facts):
        table.add_row(name, value, meaning)
    return table


def _differences(
    pairs: Iterator[tuple[ProgramSide, ProgramSide]],
    stage: str,
    facts_only: bool,
    differ: list[bool],
) -> Iterator[Part]:
    """Yield what there is to say of each pair, and note in `differ` whether they do."""
    for a, b in pairs:
        compared = comparison.compare(a, b, stage)
        if differ:
            yield ""
        differ.append(compared.differ)
        yield Heading(verdict_text(compared, a, b, stage))
        yield Heading(f"a: {a.label}")
        yield Heading(f"b: {b.label}")
        if compared.facts:
            yield compared.facts
        if compared.text and not facts_only:
            yield ""
            yield from coloured_difference(compared.text)


_STYLES = [
    (re.compile(r"\b(?:HloModule|ENTRY|ROOT|module|func\.func|return|lambda|let|in)\b"), "bold"),
    # What is done: HLO after its type, StableHLO by dialect, jaxpr after the equals sign.
    (re.compile(r"(?<=[\]})] )[a-z][\w\-]*(?=\()"), "bold blue"),
    (re.compile(r'\b(?:stablehlo|chlo|mhlo|sdy)\.\w+|"[a-z]\w*\.\w+"'), "bold blue"),
    (re.compile(r"(?<= = )[a-z_]\w*(?=\[| [a-z\d]|$)"), "bold blue"),
    # What it is done on.
    (re.compile(r"tensor<[^>]*>|\b(?:[a-z]+\d+\w*|pred|bool|token|key<\w+>)\[[^\]]*\]"), "green"),
    (re.compile(r"[%@][\w.\-]+"), "cyan"),
    (re.compile(r'"(?:[^"\\]|\\.)*"'), "yellow"),
    (re.compile(r"metadata=\{.*?\}|\bloc\(.*?\)|(?:^| )# .*$"), "dim"),
]

_CHANGED = {"+": "green", "-": "red", "@": "cyan"}


def coloured(text: str) -> Iterator[Text]:
    """Yield the lines of a jaxpr, of StableHLO or of HLO in colour."""
    for line in text.splitlines():
        shown = Text(printable(line, "\t"))
        for pattern, style in _STYLES:
            shown.highlight_regex(pattern, style)
        yield shown


def coloured_difference(text: str) -> Iterator[Text]:
    """Yield the lines of a unified diff in colour."""
    for line in text.splitlines():
        yield Text(printable(line, "\t"), _CHANGED.get(line[:1], ""))
