"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import importlib.metadata
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

Measure:

\b
  harness init                          benchmarks for a project of your own
  harness doctor                        can this machine measure, and is it quiet now?
  harness list                          the workloads in benchmarks/
  harness run --effort quick            measure all of them once
  harness run Gelu --case size=1024     measure one case, in 8 processes
  harness run --target gpu:h200         compile all of them for an H200 that is not here
  harness targets                       where programs can be built, and where run
  harness run --on tcp://host:8786      measure on the workers of a Dask scheduler
  harness nightly                       run, compare with the last good night, report

Explain:

\b
  harness profile -- python train.py    why does my program take minutes to start?
  harness compile Mlp --target tpu:v5e  which pass, kernel and line does a compile spend it on?

Read:

\b
  harness show                          the table of stages of the newest commit
  harness compare HEAD~1 HEAD           did my last commit make it slower?
  harness history                       when did it become slower?
  harness aa                            how often such verdicts are wrong on this machine
  harness baselines                     XLA beside NumPy or CuPy, where that was measured
  harness ir Mlp --facts                what XLA built; without --facts its text
  harness cache                         the persistent compilation cache: what it does and saves
  harness report                        all of it in one HTML file
  harness export -o results.parquet     every row, for pandas and friends

A workload is a class in benchmarks/ (see docs/cookbook.md); the same class runs under `asv run`,
and in a notebook with harness.sweep(MyWorkload). What is measured goes to results/, where a second
run resumes and `harness.load("results")` reads it into pandas.

\b
Exit codes: 0 fine; 1 something is slower; 2 wrong usage; 3 some cases failed; 4 nothing was
measured or found; 5 the fleet, an environment or a cache cannot be used; 6 measured, but a later
part failed; 7 what was healthy fails now; 70 an error in the harness; 130 interrupted, 143 by
SIGTERM, 129 by SIGHUP (what was finished is kept); 141 nobody reads on, as with `| head`.
"""

COMMANDS = {
    "list": Lazy("inventory:list_", "List the workloads, and what each is there to show."),
    "targets": Lazy("inventory:targets", "List where programs can be built, and run."),
    "doctor": Lazy("doctor:doctor", "Can this machine measure, and is it quiet now?"),
    "run": Lazy("run:run", "Measure workloads; a run that was stopped resumes."),
    "show": Lazy("show:show", "Print the table of stages."),
    "compare": Lazy("compare:compare", "Did it become slower? Two arms, verdicts."),
    "history": Lazy("history:history", "Where did a series of commits or nights change?"),
    "aa": Lazy("aa:aa", "How often are verdicts wrong on this machine?"),
    "baselines": Lazy("baselines:baselines", "Is XLA faster than the baselines?"),
    "ir": Lazy("ir:ir", "Print the program of one case, or how two programs differ."),
    "compile": Lazy("compile:compile", "What does XLA do in a compile: by pass, kernel and line?"),
    "cache": Lazy("cache:app", "The persistent compilation cache: what it holds and did."),
    "profile": Lazy("profile:app", "Why does a program compile so much?"),
    "report": Lazy("report:report", "Write one HTML file of everything."),
    "export": Lazy("export:export", "Write the rows of the frame to files."),
    "nightly": Lazy("nightly:nightly", "A night: run, compare, report.", "harness.nightly"),
    "init": Lazy("init:init", "Set a project of your own up.", "harness.scaffold"),
}


@click.pass_context
def _options(context: click.Context, version: bool, as_json: bool) -> None:
    if version and as_json:
        found = {name: _installed(name) for name in ("jax", "jaxlib")}
        print(json.dumps({"harness": __version__, "python": platform.python_version(), **found}))
    elif version:
        print(f"harness {__version__}")
    elif as_json:
        raise UsageError("--json goes with --version here; commands have --format json.")
    if version:
        raise Exit
    if context.invoked_subcommand is None:
        raise UsageError("A command is missing; `harness --help` lists them.")


def _installed(name: str) -> str | None:  # without psutil, which harness.targets.host loads
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
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
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
