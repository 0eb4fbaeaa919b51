"""`harness cache ledger`: record what the cache does for a program, or show recordings of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import click
from click.exceptions import Exit

from harness.cache import ledger as ledgers
from harness.cache.ledger import Requests
from harness.cache.runs import compare_runs
from harness.cli import options
from harness.cli.lazy import Command
from harness.cli.options import Argument, Option, OutputFormat
from harness.cli.output import Format, Output, check_writable, notes, print_page
from harness.errors import ExitCode, UsageError
from harness.frame.export import parquet
from harness.jaxhooks import programs
from harness.jaxhooks.events import Request
from harness.jaxhooks.temporary import temporary_folder
from harness.output import ledger as ledger_words
from harness.records.files import replaced
from harness.records.units import counted


class _AfterDashes(Command):
    """A command that runs what stands behind `--`, and reads files that do not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether there is a `--` before any other word than an option."""
        ctx.meta[_RUNS] = "--" in args
        return super().parse_args(ctx, args)


_RUNS = "harness.cache.ledger.runs"


@options.command(
    _AfterDashes,
    common="output fail_under frame variables",
    context_settings={"allow_interspersed_args": False},
    words=Argument(
        metavar="FILE... | -- PROGRAM [ARG]...",
        help="Recordings, a run each: a file, a folder with a file per process, or a profile. Or "
        "a program to run: a command, a .py file, -m MODULE or -c CODE, after --.",
    ),
    output=Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Append each request here. Into a folder, each process its own file.",
    ),
    variables=Option(
        help="Print variables for a shell, to record all that runs in it. In FILE, or the folder "
        "FILE/; runs nothing."
    ),
    frame=Option(help="Also write a row per request to a .csv or .parquet file."),
    fail_under=Option(
        metavar="PERCENT",
        min=0,
        max=100,
        help="Exit with 1 if the newest run's hit rate by seconds is below this.",
    ),
)
def ledger(
    words: list[str],
    output: Path | None = None,
    variables: bool = False,
    frame: Path | None = None,
    fail_under: float | None = None,
    format_: OutputFormat = Format.table,
) -> None:
    r"""Record what the persistent cache does for a program, or show recordings.

    \b
      harness cache ledger -- python train.py --steps 10
      harness cache ledger -o run.jsonl -- python train.py --steps 10
      harness cache ledger run.jsonl
      harness cache ledger --fail-under 90 monday.jsonl tuesday.jsonl

    The program runs unchanged, with its own input, output and exit code; every Python that it
    starts and that inherits PYTHONPATH is followed. Of several recordings the newest is shown,
    beside the last earlier one that compiled for fewer seconds.

    Exit codes: the program's own; of recordings 0, 1 below --fail-under, 4 no compile request.
    """
    if frame is not None:  # before the program runs
        if frame.suffix not in (".csv", ".parquet"):
            raise UsageError(f"--frame {frame}: a file that ends in .csv or .parquet was expected.")
        if frame.suffix == ".parquet":
            parquet(f"--frame {frame}: Parquet")
        check_writable("--frame", frame)
    runs_program = output is not None or bool(click.get_current_context().meta.get(_RUNS))
    if variables:
        _print_variables(words, output)
    elif not runs_program:
        _show(words, frame, fail_under, format_)
    elif fail_under is not None or format_ is not Format.table:
        raise UsageError(
            "--fail-under and --format are for recordings, and this runs a program: run it with "
            f"-o first, then `harness cache ledger --fail-under 90 {output or 'FILE'}`."
        )
    elif output is None:
        with temporary_folder() as folder:
            _record(words, Path(folder, "requests.jsonl"), frame, shlex.join(words))
    else:
        _record(words, output, frame, str(output))


def _record(words: list[str], output: Path, frame: Path | None, name: str) -> None:
    before = ledgers.read(output).events if output.exists() else ()
    code = programs.run_with_ledger(words, output)
    run = ledgers.read(output)
    events = run.events[len(before) :]
    _print_broken([run])
    if signal := programs.signal_of(code):
        notes.print(f"The program was ended by {signal}.", markup=False)
    runs = {name: Requests(events, run.parts)}
    if before:
        held = counted(len(before), "request")
        notes.print(f"{output} held {held} before; these are added to it.")
        runs[f"{name}, before"] = Requests(before, run.parts)
    compared = compare_runs(runs) if events else None
    if compared is not None:
        print_page(ledger_words.page(compared), notes)
    else:
        _print_nothing([name])
    _write_frame(frame, events, before)
    raise Exit(code)


def _show(words: list[str], frame: Path | None, fail_under: float | None, format_: Format) -> None:
    if late := [word for word in words if word.startswith("-")]:
        raise UsageError(f"{late[0]} came after a file name: options come before the files.")
    if twice := next((word for word in words if words.count(word) > 1), ""):
        raise UsageError(f"The recording {twice} was given twice: each is a run of its own.")
    paths = [Path(word) for word in words]
    runs = {str(path): ledgers.read(path) for path in paths}
    _print_broken(runs.values())
    compared = compare_runs(runs)
    if compared is None:
        _print_nothing(words)
    else:
        parts = list(ledger_words.page(compared))
        if fail_under is not None:
            parts.append(ledger_words.rate_line(compared, fail_under))
        Output(format_).show(parts, compared.modules, ledger_words.document(compared))
    _write_frame(frame, [event for run in runs.values() for event in run.events])
    if compared is None:
        raise Exit(ExitCode.NOTHING)
    if fail_under is not None and 100 * compared.rate_bounds[1] < fail_under:
        raise Exit(ExitCode.WORSE)


def _print_broken(runs: Iterable[Requests]) -> None:
    if broken := sum(run.broken_lines for run in runs):
        notes.print(
            f"Left out: {counted(broken, 'broken line')}; a writer was stopped in the middle."
        )


def _print_nothing(names: Iterable[str]) -> None:
    text = f"No compile request is in {', '.join(names)}: {ledger_words.NO_REQUEST}"
    print_page([text], notes)


def _write_frame(
    place: Path | None, events: Iterable[Request], lent: Iterable[Request] = ()
) -> None:
    if place is None:
        return
    rows = ledgers.frame(events, lent)
    with replaced(place, "wb", "Choose another place with --frame.") as handle:
        rows.to_csv(handle, index=False) if place.suffix == ".csv" else rows.to_parquet(handle)


def _print_variables(words: list[str], output: Path | None) -> None:
    if len(words) > 1 or output is not None:
        raise UsageError("--variables takes the name of one ledger, and no program.")
    path = os.path.abspath(words[0]) + (os.sep if words[0].endswith(os.sep) else "")
    inherited = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for name, value in programs.environment(inherited, HARNESS_LEDGER=path).items():
        print(f"export {name}={shlex.quote(value)}")
