"""What `harness profile run` says of the program that has run."""

from __future__ import annotations

import os
from pathlib import Path

from harness.cli.output import check_writable, notes
from harness.cli.profile.answer import answer
from harness.cli.profile.live import Live as Live
from harness.errors import ExitCode, HarnessError
from harness.profiles.answer.inside import inside_lines
from harness.profiles.answer.summary import is_unknown
from harness.profiles.budgets import file
from harness.profiles.recorded import Recorded, read
from harness.records.printable import printable
from harness.report import files
from harness.watch import programs
from harness.watch.programs import Ran


def check(budget: Path | None, report: Path | None) -> None:
    """Refuse a budget that cannot be read or a report that cannot be written."""
    if budget is not None:
        file.read(budget)
    if report is not None:
        files.check_report()
        check_writable("--report", report)


def tell(ran: Ran, budget: Path | None, report: Path | None) -> int:
    """Say what the profile says, on standard error; return the exit code."""
    if name := programs.signal_of(ran.code):
        _say(f"The program was ended by {name}.")
    if not ran.processes:
        _say(
            f"Nothing was recorded in {ran.folder}: the program ran no Python, or one that ignores "
            "PYTHONPATH (-I, -E, -S) or was started with a cleared environment."
        )
        _missed(budget, report)
        return ran.code or ExitCode.NOTHING
    code = ran.code
    try:
        profile = read(ran.folder)
        _say(*answer(profile, notes, below=2), *inside_lines(profile))
        if is_unknown(profile):
            code = code or ExitCode.NOTHING
        if report is not None:
            from harness.report.profile.page import write  # pandas and altair

            write(profile, report)
            _say(f"Report: {report}")
        if budget is not None:
            over = _judge(profile, budget)
            code = code or over
    except HarnessError as error:  # the program has run: what went wrong afterwards is told
        _say(f"harness: {error}")
        code = code or error.exit_code
    if not ran.complete:
        _say(f"How the program ended could not be written: {ran.folder} is full or gone.")
    _say(f"Profile: {ran.folder}")
    return code


def _missed(budget: Path | None, report: Path | None) -> None:
    """Say what there can be none of without a profile."""
    if budget is not None:
        _say(f"harness: {budget} cannot be checked without a profile.")
    if report is not None:
        _say(f"harness: {report} cannot be written without a profile.")


def _judge(profile: Recorded, budget: Path) -> int:
    """Say how a profile keeps to a budget; return the exit code."""
    result = file.checked(profile, budget)
    stale = (f"{budget}: {text}" for text in result.stale)
    _say(*result.lines(), *stale, result.verdict())
    return ExitCode.WORSE if result.over else 0


def _say(*lines: str) -> None:
    try:
        for line in lines:
            notes.print(printable(line), markup=False, emoji=False, soft_wrap=True)
    except (OSError, SystemExit):  # nobody reads it any more, for which rich ends the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
