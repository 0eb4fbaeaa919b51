"""`harness compare`: two arms, a verdict per case and stage. Thin: parse, call, print."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import files, options
from harness.cli.saying import say, warnings_said
from harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from rich.console import Console

    from harness.records.schema import Record
    from harness.verdicts.compare import Comparison

    Records = Sequence[Iterable[Record]]

FINE, SOMETHING_SLOWER, NOTHING_COMPARABLE = 0, 1, 4


class Across(enum.StrEnum):
    """What arms may be compared across only where it is asked for."""

    machine = "machine"


HELP = """Did it become slower? Hold two arms against each other: a verdict per case and stage.

\b
  harness compare HEAD~1 HEAD                  two commits that were measured
  harness compare v1.0 my-branch               tags and branches, if their commits were measured
  harness compare jax=0.11.2 jax=0.12.0.1      two releases of JAX, by the newest rows of each
  harness compare cold warm -s matmul          two scenarios, some workloads
  harness compare machine=box machine=other --across machine
                                               two machines, in raw seconds, labelled as such
  harness compare commit=1a2b3c4d,jax=0.11.2 commit=1a2b3c4d,jax=0.12.0.1
  harness compare old/results results          two results trees, or record or Parquet files
  harness compare HEAD~1 HEAD --stage compile --explain
  harness compare main HEAD --format markdown -o comment.md

\b
With --live both arms run now, in rounds: each measures both once, in random order, in fresh
processes of its own folder (a git worktree for a commit), interpreter and environment:
  harness compare main . --live                        a commit and the working tree
  harness compare . set:XLA_FLAGS=--xla_flag=1 --live  without a flag and with it
  harness compare . python=../other/.venv --live       this JAX and another one
  harness compare v1.0 v1.1,scenario=warm --live       several, joined by commas
--effort 8x3 is eight rounds of three passes. Ctrl-C compares the rounds that are finished.

\b
An arm is a path; column=value[,column=value...]; or one word that is looked up: a commit, tag or
branch, a version of JAX, an environment, machine, target, scenario or night. Of several rows of a
case in an arm the newest counts.

\b
Verdicts:
  slower, faster  hardly chance (p is corrected for the number of rows), and at least the
                  smallest effect that counts
  same            the whole 90 % interval lies within that effect
  unsure          neither: the reason says what is lacking. A time that changed while the program
                  is the same is the environment's doing, and never slower or faster
  incomparable    one side only, another version of the workload, failed, skipped, no times;
                  two machines, or unlike ones of one name, without --across machine
The unit is the process: at least 3 a side, better 8 (effort default). docs/method.md has the
formulas. Below stands how often this machine calls identical arms different (`harness aa`).

\b
Exit codes: 0 nothing slower; 1 something slower; 2 wrong usage; 4 nothing comparable.
"""


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="What to compare with.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What is judged.")],
    results: options.ResultsTree = Path("results"),
    select: options.Select = None,
    stage: options.Stages = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="Only cases with this value; repeat for more."),
    ] = None,
    format_: Annotated[
        options.Format,
        typer.Option(
            "--format",
            help="table; markdown, for a pull request; json or csv, every row and column.",
        ),
    ] = options.Format.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write into a file.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show what verdicts rest on: processes, samples, hosts, programs and the rule; of "
            "the worst 20 rows, or of those that -s, --stage and --case leave.",
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="List every row, also those that are the same.")
    ] = False,
    across: Annotated[
        list[Across] | None,
        typer.Option(
            help="Compare rows of two machines, which are incomparable without it: raw seconds "
            "decide, and every row says how the machines differ."
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Measure both arms now, in turns; see above.")
    ] = False,
    effort: Annotated[
        str, typer.Option(help="With --live: rounds and passes, as in `harness run`.")
    ] = "default",
    seed: Annotated[
        int | None, typer.Option(help="With --live: seed of the order of arms and visits.")
    ] = None,
    benchmarks: Annotated[
        Path, typer.Option("--benchmarks", metavar="DIR", help="With --live: the workloads.")
    ] = Path("benchmarks"),
) -> None:
    """Compare two arms; :data:`HELP` is what the command says of itself."""
    if explain and format_ is not options.Format.table:
        raise UsageError("--explain is for reading: leave --format out.")
    if live and across:
        raise UsageError("--live measures both arms on this machine: leave --across out.")
    from harness.cli import live as measuring
    from harness.frame.load import load
    from harness.verdicts.compare import comparison_between, named_arms
    from harness.verdicts.explain import stored_records

    chosen = {"select": select or [], "cases": case or []}
    records: Records
    if live:
        measured = measuring.measure(
            a, b, **chosen, effort=effort, seed=seed, benchmarks=benchmarks, results=results
        )
        arms, on, records = measured.arms, measured.on, measured.records
    else:
        with warnings_said():
            frame = load(results) if results.exists() else None
            arms, on = named_arms(frame, a, b, results, **chosen, stages=stage or []), None
        records = [stored_records(arm, results) for arm in arms]
    with warnings_said():
        comparison = comparison_between(
            *arms, results, stages=stage or [], on=on, interleaved=live, across=bool(across)
        )
    narrowed = any((select, stage, case))
    show(comparison, format_, output, every, records if explain else None, narrowed)


def show(
    comparison: Comparison,
    format_: options.Format,
    output: Path | None,
    every: bool,
    records: Records | None = None,
    narrowed: bool = False,
) -> None:
    """Write a comparison, and exit with its code; with `records` of its arms, explain it."""
    from harness.verdicts import markdown, summary

    if format_ is options.Format.table:
        _table(comparison, output, every, records, narrowed)
    elif format_ is options.Format.markdown:
        files.write(markdown.to_markdown(comparison, every), output)
    elif format_ is options.Format.json:
        files.write(summary.to_json(comparison), output)
    else:
        frame = summary.ordered(comparison.frame)
        files.write(frame.to_csv(index=False).rstrip("\n"), output)
    verdicts = set(comparison.frame["verdict"])
    if not verdicts - {"incomparable"}:
        say("nothing is comparable: the reasons stand in the rows (`--all`), or no row has a time.")
        raise typer.Exit(NOTHING_COMPARABLE)
    raise typer.Exit(SOMETHING_SLOWER if "slower" in verdicts else FINE)


def _table(
    comparison: Comparison,
    output: Path | None,
    every: bool,
    records: Records | None,
    narrowed: bool,
) -> None:
    from rich.console import Console

    from harness.cli import terminal
    from harness.verdicts import explain, summary

    handle = files.open_(output) if output is not None else None
    console = Console(file=handle, width=200, highlight=False) if handle else terminal.console

    def say(text: str, style: str | None = None) -> None:
        console.print(text, markup=False, soft_wrap=True, style=style)

    say(summary.heading(comparison), "bold")
    for line in summary.across_lines(comparison):
        say(line, "bold")
    for line in summary.environment_lines(comparison):
        say(line)
    overview = summary.overview(comparison.frame)
    if len(overview):
        _print_rows(console, overview)
        say("")
    if records is not None:
        for text in explain.explained(comparison, records, narrowed):
            say(f"\n{text}")
        say("")
    else:
        rows, left_out = summary.listed(comparison.frame, every)
        if len(rows):
            _print_rows(console, summary.table(rows))
        for line in (*left_out, *summary.legend(comparison)):
            say(line)
    say(summary.summary_text(comparison.frame), "bold")
    for line in summary.footer(comparison):
        say(line)
    if handle:
        handle.close()


def _print_rows(console: Console, rows: pd.DataFrame) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in rows.columns:
        right = heading not in ("workload", "case", "stage", "verdict", "reason")
        fixed = heading not in ("case", "reason", "workload")
        table.add_column(heading, justify="right" if right else "left", no_wrap=fixed)
    for row in rows.itertuples(index=False):
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)
