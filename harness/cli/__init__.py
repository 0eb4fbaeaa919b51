"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import __version__
from harness.cli import aa as cli_aa
from harness.cli import baselines as cli_baselines
from harness.cli import cache as cli_cache
from harness.cli import compare as cli_compare
from harness.cli import export as cli_export
from harness.cli import history as cli_history
from harness.cli import init as cli_init
from harness.cli import ir as cli_ir
from harness.cli import nightly as cli_nightly
from harness.cli import options
from harness.cli import profile as cli_profile
from harness.cli import report as cli_report
from harness.cli import running as cli_running
from harness.cli.exit_codes import DEFECT, NOTHING_MEASURED
from harness.cli.saying import say, warnings_said
from harness.errors import HarnessError

if TYPE_CHECKING:
    import pandas as pd

HELP = """Measure where a JAX program's time goes: trace, lower, compile, execute.

Measure:

\b
  harness init                          benchmarks for a project of your own
  harness list                          the workloads in benchmarks/
  harness run --effort quick            measure all of them once, in about a minute
  harness run Gelu --case size=1024     measure one case, in 8 processes
  harness run --target gpu:h200         compile all of them for an H200 that is not here
  harness targets                       where programs can be built, and where run
  harness run --on tcp://host:8786      measure on the workers of a Dask scheduler
  harness nightly                       a whole night on this machine, restartable

Explain:

\b
  harness profile -- python train.py    why does my program take minutes to start?

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
measured or found; 5 the fleet cannot be used; 70 an error in the harness; 130 interrupted (what was
finished is kept).
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich would double the time that --help takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(cli_cache.app, name="cache")
app.add_typer(cli_profile.app, name="profile")
app.command("ir", help=cli_ir.HELP, no_args_is_help=True)(cli_ir.ir)
app.command("baselines", help=cli_baselines.HELP)(cli_baselines.baselines)
app.command("compare", help=cli_compare.HELP, no_args_is_help=True)(cli_compare.compare)
app.command("export", help=cli_export.HELP, no_args_is_help=True)(cli_export.export)
app.command("aa", help=cli_aa.HELP)(cli_aa.aa)
app.command("history", help=cli_history.HELP)(cli_history.history)
app.command("report", help=cli_report.HELP)(cli_report.report)
app.command("nightly", help=cli_nightly.HELP)(cli_nightly.nightly)
app.command("init", help=cli_init.HELP)(cli_init.init)


def main() -> None:
    """Run the command line; every error that a user can mend becomes one line and an exit code."""
    try:
        app(prog_name="harness")
    except HarnessError as error:
        say(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader, a pager or head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception:  # a defect, whatever it is: the exit code has to say so
        traceback.print_exc()
        sys.exit(DEFECT)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"harness {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_(
    select: options.Workloads = None, benchmarks: options.Benchmarks = Path("benchmarks")
) -> None:
    """List the workloads, their axes and what each is there to show."""
    from harness.cli import terminal

    found = cli_running.discover(benchmarks, select or [])
    terminal.print_workloads(found)


app.command("run")(cli_running.run)


TARGETS_HELP = """List the targets: where programs can be built, where run, and what is lacking.

\b
  cpu, gpu, tpu      this machine's own: built and run there
  gpu:h200, tpu:v5e  compile-only: built for a device that need not be here, and not run, so that
                     trace, lower and compile are measured, and dispatch and execute are n/a
  gpu:FILE.pbtxt     compile-only, for the GPU that a file of yours describes (XLA's
                     GpuTargetConfigProto); it is called gpu:FILE from then on

\b
Measure on one with     harness run --target gpu:h200
The compilers of the compile-only targets come with the extra `targets` (Linux x86_64), without
driver and device. docs/gpu-tpu-compile.md tells how to use them in CI.
"""


@app.command("targets", help=TARGETS_HELP)
def targets_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET]...", help="Only these; a gpu:FILE.pbtxt is read."),
    ] = None,
) -> None:
    """List the targets; the text that users see is TARGETS_HELP."""
    from harness import targets
    from harness.cli import terminal

    chosen = targets.find_all(names) if names else list(targets.TARGETS.values())
    sightings = targets.survey(chosen)
    terminal.print_targets(sightings)
    if not any(sighting.here for sighting in sightings):
        raise typer.Exit(NOTHING_MEASURED)


@app.command()
def show(
    path: options.ResultsPath = Path("results"),
    select: options.Select = None,
    latest: Annotated[
        bool,
        typer.Option(
            "--latest/--all", help="Only what was measured last, or every commit and environment."
        ),
    ] = True,
    facts: Annotated[
        bool,
        typer.Option(
            "--facts", help="Also what was built: launches, fusions, flops, bytes, temporaries."
        ),
    ] = False,
) -> None:
    """Print the table of stages."""
    from harness.cli import terminal
    from harness.frame.choose import ordinary

    frame = _load(path)
    if ordinary(frame).empty:
        say(f"{path} holds comparisons only. `harness baselines {path}` shows them.")
        raise typer.Exit(NOTHING_MEASURED)
    terminal.print_stages(frame, select or [], latest, facts)


def _load(path: Path) -> pd.DataFrame:
    from harness.frame.load import load

    with warnings_said():
        frame = load(path)  # warns where there is nothing
    if frame.empty:
        raise typer.Exit(NOTHING_MEASURED)
    return frame
