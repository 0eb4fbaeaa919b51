"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
import traceback

import click
from click.exceptions import Exit

from harness import __version__
from harness.cli.lazy import Lazy, LazyGroup
from harness.errors import ExitCode, HarnessError, UsageError

HELP = """Measure where a JAX program's time goes: trace, lower, compile, execute.

\b
  harness profile -- python train.py    why does it take minutes to start?
  harness run                           measure the functions in benchmarks/
  harness compare HEAD~1 HEAD           did my last commit make it slower?

`harness init` writes benchmarks/ for a project. A workload there is a class; `asv run` measures it,
too, and so does harness.sweep(MyWorkload) in a notebook. Results go to results/, where a second run
resumes and `harness.load("results")` reads them into pandas.

\b
Exit codes:
  0    fine
  1    something is slower
  2    wrong usage
  3    some cases failed
  4    nothing was measured, or there is nothing to show
  5    the fleet, an environment or a cache cannot be used
  6    measured, but a later part failed
  7    what worked before fails now
  70   an error in the harness
  129  ended by SIGHUP, 130 by Ctrl-C, 143 by SIGTERM; finished measurements are stored
  141  output pipe closed, as with `| head`
"""

COMMANDS = {
    "profile": Lazy("profile:app", "Why does a program take long to start?", group="first"),
    "run": Lazy("run:run", "Measure workloads; an interrupted run resumes."),
    "compare": Lazy("compare:compare", "Did it become slower? Baseline against candidate."),
    "init": Lazy("init:init", "Set up benchmarks in a project.", "harness.init", "set up"),
    "doctor": Lazy("doctor:doctor", "Can this machine measure, and is it quiet now?"),
    "list": Lazy("inventory:list_", "List the workloads in benchmarks/."),
    "targets": Lazy("inventory:targets", "List where programs can be built, and run."),
    "show": Lazy("show:show", "Print the times of each stage.", group="read"),
    "history": Lazy("history:history", "When did it become slower?"),
    "baselines": Lazy("baselines:baselines", "Is XLA faster than NumPy, numba or CuPy?"),
    "report": Lazy("report:report", "Write everything into one HTML file."),
    "export": Lazy("export:export", "Write rows to CSV, Parquet, or for other tools."),
    "compile": Lazy(
        "compile:compile",
        "Which pass and line does a compile spend time on?",
        group="explain",
    ),
    "ir": Lazy("ir:ir", "What XLA built, or how two programs differ."),
    "cache": Lazy("cache:app", "JAX's persistent cache: inspect, repair, explain."),
    "nightly": Lazy(
        "nightly:nightly", "Run, compare with the last good night.", "harness.nightly", "repeat"
    ),
    "aa": Lazy("aa:aa", "How often are verdicts wrong on this machine?"),
}


@click.pass_context
def _options(context: click.Context, version: bool, as_json: bool) -> None:
    if version and as_json:
        versions = {name: _installed(name) for name in ("jax", "jaxlib")}
        print(json.dumps({"harness": __version__, "python": platform.python_version(), **versions}))
    elif version:
        print(f"harness {__version__}")
    elif as_json:
        raise UsageError("--json goes with --version here; commands have --format json.")
    if version:
        raise Exit
    if context.invoked_subcommand is None:
        raise UsageError("Missing: a command; `harness --help` lists them.")


def _installed(name: str) -> str | None:  # without psutil, which harness.targets.host loads
    import importlib.metadata  # 20 ms that `--help` does not need

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


app = LazyGroup(
    name="harness",
    lazy=COMMANDS,
    help=HELP,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    callback=_options,
    params=[
        click.Option(["--version"], is_flag=True, help="Show the version."),
        click.Option(
            ["as_json", "--json"],
            is_flag=True,
            help="With --version: those of Python and JAX, too.",
        ),
    ],
)


MACHINE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}
"""Errors of a disk or a limit that may meet any line, and are no defect of it."""

TO_DO = (
    "That is the machine's: make room, or have TMPDIR name another folder, and run the same "
    "command again. What was measured before is kept."
)


def main() -> None:
    """Run the command line; every error that a user can mend becomes one line and an exit code."""
    if sys.stdout is None:  # it was closed before Python began
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        sys.exit(app.main(prog_name="harness", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(ExitCode.INTERRUPTED)
    except HarnessError as error:
        from harness.cli.output import say  # rich takes a while to import

        say(str(error))
        sys.exit(error.exit_code)
    except Exception as error:  # a defect, whatever it is: the exit code has to say so
        if isinstance(error, OSError) and error.errno in MACHINE:
            print(f"harness: {error}. {TO_DO}", file=sys.stderr)
            sys.exit(ExitCode.NOTHING)
        traceback.print_exc()
        sys.exit(ExitCode.DEFECT)
