"""`harness profile run`: run a program and profile it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import options
from harness.cli.cache.options import check_writable
from harness.cli.lazy import SETTINGS
from harness.cli.output import notes, printable
from harness.cli.profile.answer import answer
from harness.cli.profile.live import Live
from harness.errors import ExitCode, HarnessError
from harness.profiles.answer.inside import inside_lines
from harness.profiles.answer.summary import is_unknown
from harness.profiles.budgets import file
from harness.profiles.recorded import Recorded, read
from harness.report import files
from harness.watch import programs
from harness.watch.programs import Ran

HELP = """Run a program and say where its time went, and why it compiled what it compiled.

\b
  harness profile -- python train.py --steps 10
  harness profile -o FOLDER -- train.py             a .py file, -m MODULE, -c CODE, python's flags
  harness profile -- pytest tests                   any command that is a Python program
  harness profile --budget budgets.toml -- train.py exit code 1 where more is compiled than allowed

The program runs unchanged: its own interpreter, arguments, input, output and signals. What is said
of it goes to standard error, and its exit code is kept: 128 + n where signal n ended it.
Followed are the Python processes that it starts, forks, or becomes by exec, as long as they inherit
PYTHONPATH and read it: not `python -I`, `-E` or `-S`, nor where the environment is cleared.
"""


@options.command(
    HELP,
    no_args_is_help=True,
    context_settings={**SETTINGS["context_settings"], "allow_interspersed_args": False},
)
def run(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM [ARG]",
            help="A command, a .py file, -m MODULE or -c CODE, after --.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where to write the profile: a folder that is empty or new. "
            "profile-YYYYMMDD-HHMMSS here without it.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show what is being compiled while the program runs.")
    ] = False,
    budget: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Exit with 1 where the program exceeds these budgets."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the HTML report here as well.")
    ] = None,
    inside: Annotated[
        bool,
        typer.Option(
            "--inside",
            help="Also say what XLA does in the dearest compiles, by its own events; a compile "
            "takes about 15 ms more for it, half a second where libtpu is installed.",
        ),
    ] = False,
    sample: Annotated[
        float,
        typer.Option(
            min=0, metavar="MS", help="Look where threads are every so many ms; 0 for never."
        ),
    ] = 25.0,
) -> None:
    """Run a program and profile it."""
    # What is wrong with an option is said before the program runs, which may take hours.
    command = programs.command_of(words, programs.PROFILE_EXAMPLE)
    if budget is not None:
        file.read(budget)
    if report is not None:
        files.check_report()
        check_writable("--report", report)
    folder = programs.new_folder(output)
    with Live(folder) if live else contextlib.nullcontext():
        ran = programs.run_profiled(command, folder, sample, inside)
    raise typer.Exit(tell(ran, budget, report))


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
