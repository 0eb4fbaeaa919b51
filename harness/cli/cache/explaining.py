"""`harness cache explain`: why a compile of the second run found, or missed, the first's entry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.cache import app
from harness.errors import ExitCode

HELP = """Say, module by module, which part of the key changed between two runs, and how.

\b
  harness cache ledger -o a.jsonl -- python train.py
  harness cache ledger -o b.jsonl -- python train.py
  harness cache explain a.jsonl b.jsonl
"""


@app.command("explain", help=HELP, no_args_is_help=True)
def explain(
    a: Annotated[Path, typer.Argument(metavar="A", help="The ledger of the run that compiled.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The ledger of the run that missed.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Show the modules that hit as well.")
    ] = False,
) -> None:
    """Compare two ledgers and print what changed."""
    from harness.cache import explain as comparing
    from harness.cache.ledger import read
    from harness.cli.output import console

    books = read(a), read(b)
    found = comparing.explain(*books)
    for one in found:
        if one.status == "hit" and not everything:
            continue
        console.print(f"{one.module}: {one.verdict}", markup=False, soft_wrap=True)
        if one.a is not None and one.b is not None and one.a.module != one.b.module:
            console.print(f"    was {one.a.module}", markup=False, soft_wrap=True)
        for difference in one.differences:
            console.print(f"  {difference.component}", markup=False)
            for line in difference.lines:
                console.print(f"    {line}", markup=False, soft_wrap=True)
    hits = sum(one.status == "hit" for one in found)
    console.print(f"{len(found)} modules, {hits} of them hits.", markup=False)
    for path, book in zip((a, b), books, strict=True):
        keyless = [event for event in book.events if not event.key]
        if keyless:
            console.print(
                f"{path}: {len(keyless)} requests had no key: {keyless[0].detail}",
                markup=False,
                soft_wrap=True,
            )
    if not found:
        raise typer.Exit(ExitCode.NOTHING)
