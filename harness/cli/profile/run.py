"""`harness profile run`: run a program and profile it."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

from click.exceptions import Exit

from harness.cli import options
from harness.cli.lazy import SETTINGS
from harness.cli.options import Argument, Option
from harness.watch import programs


@options.command(
    context_settings={**SETTINGS, "allow_interspersed_args": False},
    words=Argument(
        metavar="PROGRAM [ARG]...", help="A command, a .py file, -m MODULE or -c CODE, after --."
    ),
    output=Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Where to write the profile: a folder that is empty or new. "
        "profile-YYYYMMDD-HHMMSS here without it.",
    ),
    live=Option(help="Show what is being compiled while the program runs."),
    budget=Option(metavar="FILE", help="Exit with 1 where the program exceeds these budgets."),
    report=Option(metavar="FILE", help="Write the HTML report here as well."),
    inside=Option(
        help="Also say what XLA does in the longest compiles, by its own events; a compile "
        "takes about 15 ms more for it, half a second where libtpu is installed."
    ),
    sample=Option(
        min=0, metavar="MS", help="Look where threads are every so many ms; 0 for never."
    ),
)
def run(
    words: list[str],
    output: Path | None = None,
    live: bool = False,
    budget: Path | None = None,
    report: Path | None = None,
    inside: bool = False,
    sample: float = 25.0,
) -> None:
    r"""Run a program and say where its time went, and why it compiled what it compiled.

    \b
      harness profile -- python train.py --steps 10
      harness profile -o FOLDER -- train.py              a .py file, -m MODULE, -c CODE or flags
      harness profile -- pytest tests                    any command that is a Python program
      harness profile --budget budgets.toml -- train.py  exit code 1 where too much is compiled

    The program runs unchanged: its own interpreter, arguments, input, output and signals. What is
    said of it goes to standard error, and its exit code is kept: 128 + n where signal n ended it.
    Followed are the Python processes that it starts, forks, or becomes by exec, as long as they
    inherit PYTHONPATH and read it: not `python -I`, `-E` or `-S`, nor where the environment is
    cleared.
    """
    # What is wrong with an option is said before the program runs, which may take hours.
    command = programs.command_of(words, programs.PROFILE_EXAMPLE)
    if budget is not None or report is not None:
        _told().check(budget, report)
    folder = programs.new_folder(output)
    with _told().Live(folder) if live else contextlib.nullcontext():
        threading.Thread(target=_told, daemon=True).start()
        ran = programs.run_profiled(command, folder, sample, inside)
    raise Exit(_told().tell(ran, budget, report))


def _told() -> Any:
    """Return what says what was recorded; loaded while the program runs, it delays nothing."""
    from harness.cli.profile import told  # NumPy, and all causes

    return told
