"""`harness fsck`: what in a results tree is damaged, foreign or left over."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pandas as pd
from click.exceptions import Exit

from harness import fsck as tree_check
from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import Output, Part, TextTable
from harness.errors import ExitCode
from harness.fsck import TreeCheck


@options.command(repair=Option(help="Repair what can be."))
def fsck(*, results: options.Results, repair: bool = False, output: Output) -> None:
    r"""Say what in a results tree is damaged, foreign or left over.

    \b
      harness fsck                  every file of results/, by its checksum and its content
      harness fsck --repair         remove what killed processes have left, and put aside what is
                                    damaged and can be made again of what else is there
      harness fsck --format json    for programs

    \b
    What is found:
      damaged     a checksum or the content is wrong. Records are never rewritten: damaged lines are
                  left out by every command, and measured again by the same `harness run`.
      foreign     no file of the harness or of asv
      not signed  HARNESS_SIGNERS is set, and this is signed by nobody who may
      left over   a temporary file or folder, or a worktree, of a process that was killed

    A file that is put aside gets the ending .damaged; no command reads it.

    \b
    Exit codes: 0 fine, or all was repaired; 1 something is to be done; 2 it is no results tree.
    """
    report = tree_check.check(results.path, repair)
    rows = pd.DataFrame(
        [msgspec.to_builtins(one) for one in report.findings],
        columns=list(tree_check.Fault.__struct_fields__),
    )
    document = {"schema": 1, **msgspec.to_builtins(report)}
    output.show(_page(report, rows), rows, document)
    if report.open:
        raise Exit(ExitCode.WORSE)


def _page(report: TreeCheck, rows: pd.DataFrame) -> Iterator[Part]:
    if len(rows):
        shown = rows.assign(repaired=rows["repaired"].map({True: "repaired", False: ""}))
        columns = ["state", "path", "repaired", "what", "remedy"]
        yield TextTable(shown[columns], columns, ["what", "remedy"])
    done = len(report.findings) - len(report.open)
    yield f"{report.files} files read: {len(report.open)} findings, {done} repaired."
