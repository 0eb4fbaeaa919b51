"""`harness profile diff`: a profile against another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Format, Heading, Output, Part, TextTable
from harness.output.profile_diff import (
    answer,
    document,
    facts_table,
    footer,
    functions_table,
    listed,
    totals_table,
    warnings,
)
from harness.profiles.compare import ProfileDifference, compare, frame
from harness.profiles.recorded import read

MOST_ROWS = 30

WORDS = ("function", "", "causes", "together")
"""Columns of words; the others are numbers."""


@options.command(
    common="every format_ output",
    a=Argument(metavar="A", help="The profile to compare with."),
    b=Argument(metavar="B", help="The profile that is compared."),
    every=Option("--all", help="List every function, also those that are the same."),
)
def diff(*, a: Path, b: Path, every: bool = False, output: Output) -> None:
    r"""What changed from profile A to profile B?

    \b
      harness profile -o before -- python train.py
      harness profile -o after -- python train.py --new
      harness profile diff before after
      harness profile diff before after --format markdown -o comment.md

    Functions are distinguished by file and qualified name, wherever the line; one that was renamed
    is new and gone. Counts, causes and bytes are exact. Seconds are of one run each, without error
    bars: they are shown, and never called a change (`harness compare` judges times, of several
    processes).

    It is no verdict: the exit code is 0 (2 for wrong usage, 4 for a folder without a profile).
    `harness profile --max-compiles N -- PROGRAM` is what fails.
    """
    difference = compare(read(a), read(b))
    page = _page(difference, every, output.format is Format.markdown)
    output.show(page, frame(difference), document(difference))


def _page(difference: ProfileDifference, every: bool, whole: bool) -> Iterator[Part]:
    first, *rest = answer(difference)
    yield Heading(first)
    yield from rest
    yield from (f"Warning: {text}" for text in warnings(difference))
    changes = listed(difference, every)
    shown = changes if every or whole else changes[:MOST_ROWS]
    for table in (functions_table(shown), totals_table(difference), facts_table(difference)):
        if len(table):
            yield ""
            words = tuple(map(str, table)) if table.columns[0] == "recorded with" else WORDS
            yield TextTable(table, words, words)
    yield ""
    if len(changes) > len(shown):
        yield f"{len(changes) - len(shown)} more functions changed: --all lists them."
    yield from footer(difference)
