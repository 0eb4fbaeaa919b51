"""`harness profile diff` and `check`: a profile against another one, or a budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Format, Heading, Output, Part, TextTable, say
from harness.errors import ExitCode, UsageError
from harness.profiles.budgets.file import CheckedBudget, checked
from harness.profiles.budgets.file import write as write_budget
from harness.profiles.budgets.use import number
from harness.profiles.diff.compare import compare
from harness.profiles.diff.difference import (
    ProfileDifference,
    document,
    facts_table,
    footer,
    frame,
    functions_table,
    listed,
    totals_table,
)
from harness.profiles.figures import damage
from harness.profiles.recorded import read
from harness.records.units import counted

MOST_ROWS = 30

WORDS = ("function", "", "causes", "together")
"""Columns of words; the others are numbers."""


@options.command(
    a=Argument(metavar="A", help="The profile to compare with."),
    b=Argument(metavar="B", help="The profile that is compared."),
    every=Option("--all", help="List every function, also those that are the same."),
)
def diff(*, a: Path, b: Path, every: bool = False, output: Output) -> None:
    r"""Say what changed from profile A to profile B: functions, causes, totals, settings.

    \b
      harness profile -o before -- python train.py
      harness profile -o after -- python train.py --new
      harness profile diff before after
      harness profile diff before after --format markdown -o comment.md

    Functions are told apart by file and qualified name, wherever the line; one that was renamed is
    new and gone. Counts, causes and bytes are exact. Seconds are of one run each and have no error
    bar: they are shown, and never called a change (`harness compare` judges times, of several
    processes).

    It is no verdict: the exit code is 0 (2 for wrong usage, 4 for a folder without a profile).
    `harness profile check` is the one that fails.
    """
    difference = compare(read(a), read(b))
    page = _page(difference, every, output.format is Format.markdown)
    output.show(page, frame(difference), document(difference))


def _page(difference: ProfileDifference, every: bool, whole: bool) -> Iterator[Part]:
    first, *rest = difference.answer
    yield Heading(first)
    yield from rest
    yield from (f"Warning: {text}" for text in difference.warnings)
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


MOST_LIMITS = 15


@options.command(
    budget=Option(metavar="FILE", help="The budget file."),
    write=Option(metavar="FILE", help="Write a budget that it just keeps to."),
    force=Option(help="With --write: replace a file that is there."),
)
def check(
    folder: options.Profile,
    budget: Path | None = None,
    write: Path | None = None,
    force: bool = False,
) -> None:
    r"""Fail where a program builds more than a budget file allows.

    \b
      harness profile -o now -- python train.py            record
      harness profile check now --write budgets.toml       a budget from what was seen
      harness profile check now --budget budgets.toml      hold a profile against it
      harness profile check now --budget pyproject.toml    its [tool.harness.budget] tables

    \b
      [total]                          # everything together
      max_compiles = 40
      max_eager = 100                  # JAX's own functions, called outside jax.jit
      [default]                        # each function that has no table of its own
      max_compiles = 3
      [functions."train.py:loss"]      # a name, or an expression of all of it
      max_compiles = 1

    Limits: max_compiles (compiled or loaded from the persistent cache), max_traces, max_lowers,
    max_builds, max_eager, max_unexplained, and max_compile_seconds, which depends on the machine.

    \b
    Exit codes: 0 within the budget; 1 over it; 2 wrong usage, or a file that is not understood;
    4 no profile.
    """
    if (budget is None) == (write is None):
        raise UsageError("Give --budget FILE to check, or --write FILE to make a budget.")
    if force and write is None:
        raise UsageError("--force belongs to --write FILE.")
    profile = read(folder)
    for text in damage(profile):
        say(f"{folder}: {text}")
    if write is not None:
        functions = counted(write_budget(profile, write, force), "function")
        say(f"wrote {write}: a budget of {functions}, which this profile just keeps to.")
        return
    assert budget is not None
    result = checked(profile, budget)
    Output().page([*result.lines(), *_table(result)])
    for text in result.stale:
        say(f"{budget}: {text}")
    Output().page([result.verdict()])
    if result.over:
        raise Exit(ExitCode.WORSE)


def _table(result: CheckedBudget) -> Iterator[Part]:
    if not result.uses:
        return
    shown = result.uses[: max(MOST_LIMITS, len(result.over))]
    rows = [
        (
            use.where,
            use.users[0].function.label if use.one and use.users else "all",
            use.name,
            number(use.used) if use.name != "max_compile_seconds" else f"{use.used:.3g}",
            number(use.allowed),
            "over" if use.over else "",
        )
        for use in shown
    ]
    headings = ["budget", "function", "limit", "used", "allowed", ""]
    words = ("budget", "function", "limit", "")
    yield TextTable(pd.DataFrame(rows, columns=headings), words, words[:2])
    if len(result.uses) > len(shown):
        yield f"… and {len(result.uses) - len(shown)} more that are further from their limit."
