"""`harness cache explain`: why a compile of the second run found, or missed, the first's entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from harness.cache.explain import Explained, explain_runs
from harness.cache.ledger import read
from harness.cli import options
from harness.cli.output import print_page
from harness.errors import ExitCode

HELP = """Say, module by module, which part of the key changed between two runs, and how.

\b
  harness cache ledger -o a.jsonl -- python train.py
  harness cache ledger -o b.jsonl -- python train.py
  harness cache explain a.jsonl b.jsonl
"""


@options.command(HELP, no_args_is_help=True)
def explain(
    a: Annotated[Path, typer.Argument(metavar="A", help="The ledger of the run that compiled.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The ledger of the run that missed.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Show the modules that hit as well.")
    ] = False,
) -> None:
    """Compare two ledgers and print what changed."""
    runs = read(a), read(b)
    modules = explain_runs(*runs)
    hits = sum(one.status == "hit" for one in modules)
    for one in modules:
        if everything or one.status != "hit":
            print_page(_lines(one))
    print_page([f"{len(modules)} modules, {hits} of them hits."])
    for path, run in zip((a, b), runs, strict=True):
        keyless = [event for event in run.events if not event.key]
        if keyless:
            print_page([f"{path}: {len(keyless)} requests had no key: {keyless[0].detail}"])
    if not modules:
        raise typer.Exit(ExitCode.NOTHING)


def _lines(one: Explained) -> Iterator[str]:
    yield f"{one.module}: {one.verdict}"
    if one.a is not None and one.b is not None and one.a.module != one.b.module:
        yield f"    was {one.a.module}"
    for difference in one.differences:
        yield f"  {difference.component}"
        yield from (f"    {line}" for line in difference.lines)
