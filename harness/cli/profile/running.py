"""`harness profile run`: run a program and profile it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.profile import app
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from harness.profiling.following import Ran

OVER_BUDGET = 1

HELP = """Run a program and say where its time went, and why it compiled what it compiled.

\b
  harness profile -- python train.py --steps 10
  harness profile -o FOLDER -- train.py             a .py file, -m MODULE, -c CODE, python's flags
  harness profile -- pytest tests                   any command that is a Python program
  harness profile --budget budget.toml -- train.py  exit code 1 where more is compiled than allowed

The program runs unchanged: its own interpreter, arguments, input, output and signals. What is said
of it goes to standard error, and its exit code is kept: 128 + n where signal n ended it.
Followed are the Python processes that it starts, forks, or becomes by exec, as long as they inherit
PYTHONPATH and read it: not `python -I`, `-E` or `-S`, nor where the environment is cleared.
"""


@app.command(
    "run",
    help=HELP,
    no_args_is_help=True,
    context_settings={"allow_interspersed_args": False},
)
def run(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM [ARG]...",
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
    sample: Annotated[
        float,
        typer.Option(
            min=0, metavar="MS", help="Look where threads are every so many ms; 0 for never."
        ),
    ] = 25.0,
) -> None:
    """Run a program and profile it; the text that users see is HELP."""
    from harness.cli.cache.options import check_writable
    from harness.following import programs
    from harness.profiling import following

    command = programs.command_of(words, following.EXAMPLE)
    if budget is not None and not budget.is_file():
        raise UsageError(f"--budget {budget}: there is no such file.")
    if report is not None:
        check_writable("--report", report)
    folder = following.new_folder(output)
    with _live(folder, live):
        ran = following.run(command, folder, sample)
    raise typer.Exit(_tell(ran, budget, report))


@contextlib.contextmanager
def _live(folder: Path, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    from harness.cli.profile.live import Live

    line = Live(folder)
    line.start()
    try:
        yield
    finally:
        line.stop()


def _tell(ran: Ran, budget: Path | None, report: Path | None) -> int:
    """Say what the profile says, on standard error; return the exit code."""
    from harness.following import programs
    from harness.profiling.model import read

    if name := programs.signal_of(ran.code):
        _say(f"The program was ended by {name}.")
    if not ran.processes:
        _say(
            f"Nothing was recorded in {ran.folder}: the program ran no Python, or one that ignores "
            "PYTHONPATH (-I, -E, -S) or was started with a cleared environment."
        )
        return ran.code
    code = ran.code
    try:
        profile = read(ran.folder)
        for line in profile.summary():
            _say(line)
        if report is not None:
            profile.report(report)
            _say(f"Report: {report}")
        if budget is not None:
            from harness.profiling.budgets.checking import check

            problems = check(profile, budget)
            for problem in problems:
                _say(problem)
            code = code or (OVER_BUDGET if problems else 0)
    except HarnessError as error:  # the program has run: what went wrong afterwards is told
        _say(f"harness: {error}")
        code = code or error.exit_code
    if not ran.complete:
        _say(f"How the program ended could not be written: {ran.folder} is full or gone.")
    _say(f"Profile: {ran.folder}   (harness profile show {ran.folder})")
    return code


def _say(line: str) -> None:
    from harness.cli.terminal import notes

    try:
        notes.print(line, markup=False, soft_wrap=True)
    except (OSError, SystemExit):  # nobody reads it any more, for which rich ends the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
