"""`harness cache ledger`: run a program under a ledger, or add ledgers up."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from click.exceptions import Exit

from harness.cache import ledger as ledgers
from harness.cache.ledger import Share, Summary
from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import check_writable, console, notes, print_page
from harness.errors import ExitCode, UsageError
from harness.frame.export import parquet
from harness.records.files import replaced
from harness.records.units import counted
from harness.watch import programs
from harness.watch.ledger_events import reason_text


@options.command(
    context_settings={"allow_interspersed_args": False},
    words=Argument(
        metavar="FILE... | PROGRAM [ARG]...",
        help="Ledgers to add up; or, with -o, a program to run under one: a command, a .py "
        "file, -m MODULE or -c CODE, after --.",
    ),
    output=Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Run, and append each request here, or to a file of its own in a folder.",
    ),
    variables=Option(
        help="Print what a shell is to export, so that all that runs below it is recorded "
        "in FILE, or in the folder FILE/, and run nothing."
    ),
    earlier=Option(help="A ledger that only lends its cold compile seconds; repeat for more."),
    frame=Option(help="Write a row per request to a .csv or .parquet file as well."),
)
def ledger(
    words: list[str],
    output: Path | None = None,
    variables: bool = False,
    earlier: list[Path] | None = None,
    frame: Path | None = None,
) -> None:
    r"""Say what the persistent cache did for a program, request by request.

    \b
      harness cache ledger -o run.jsonl -- python train.py --steps 10
      harness cache ledger run.jsonl

    The program runs unchanged, with its own input, output and exit code; every Python that it
    starts and that inherits PYTHONPATH is followed.

    Exit codes: the program's own; of ledgers 0, or 4 where no compile request is in them.
    """
    if frame is not None:  # before the program runs
        if frame.suffix not in (".csv", ".parquet"):
            raise UsageError(f"--frame {frame}: a file that ends in .csv or .parquet was expected.")
        if frame.suffix == ".parquet":
            parquet(f"--frame {frame}: Parquet")
        check_writable("--frame", frame)
    if variables:
        _print_variables(words, output)
        return
    code = skipped = 0
    if output is None:
        if late := [word for word in words if word.startswith("-")]:
            raise UsageError(f"{late[0]} came after a file name: options come before the files.")
        paths = [Path(word) for word in words]
    else:
        skipped = len(ledgers.read(output).events) if output.exists() else 0
        paths = [output]
        code = programs.run_with_ledger(words, output)
    runs = [ledgers.read(path) for path in paths]
    events = [event for run in runs for event in run.events][skipped:]
    lent = [event for path in earlier or () for event in ledgers.read(path).events]
    lent += runs[0].events[:skipped]
    if broken := sum(run.broken_lines for run in runs):
        notes.print(
            f"Left out: {counted(broken, 'broken line')}; a writer was stopped in the middle."
        )
    if output is not None and (name := programs.signal_of(code)):
        notes.print(f"The program was ended by {name}.", markup=False)
    if skipped:
        notes.print(f"{output} held {counted(skipped, 'request')} before; these are added to it.")
    if events:
        lines = lines_of(ledgers.summarize(events, lent))
        print_page(lines, console if output is None else notes)
    else:
        text = f"No compile request is in {', '.join(map(str, paths))}: {ledgers.NO_REQUEST}"
        print_page([text], notes)
    if frame is not None:
        rows = ledgers.frame(events, lent)
        with replaced(frame, "wb", "Choose another place with --frame.") as handle:
            rows.to_csv(handle, index=False) if frame.suffix == ".csv" else rows.to_parquet(handle)
    raise Exit(code if output is not None or events else ExitCode.NOTHING)


def _print_variables(words: list[str], output: Path | None) -> None:
    if len(words) > 1 or output is not None:
        raise UsageError("--variables takes the name of one ledger, and no program.")
    path = os.path.abspath(words[0]) + (os.sep if words[0].endswith(os.sep) else "")
    inherited = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for name, value in programs.environment(inherited, HARNESS_LEDGER=path).items():
        print(f"export {name}={shlex.quote(value)}")


def lines_of(summary: Summary) -> Iterator[str]:
    """Yield a summary as lines of text."""
    requests = counted(summary.requests, "compile request")
    yield f"{requests} in {counted(summary.processes, 'process')}"
    yield f"  {summary.hits} hits, {summary.bytes_in} bytes read in {summary.load_s:.3f} s"
    yield f"  {summary.written} misses written, {summary.bytes_out} bytes"
    for reason, count in summary.unwritten.items():
        yield f"  {count} misses not written: {reason_text(reason)}"
    if summary.failed:
        yield f"  {summary.failed} failed: the program saw an error"
    yield f"errors: {summary.read_errors} reading, {summary.write_errors} writing"
    yield f"hit rate by count: {_rate(summary.by_count, '', 0)}"
    yield f"hit rate by seconds: {rate_by_seconds(summary)}"
    saved = f"compile seconds: {summary.compile_s:.3f} s spent, {summary.saved_s:.3f} s saved"
    yield f"{saved} (JAX's own compile_time_saved_sec: {summary.jax_saved_s:.3f} s)"
    if summary.hits_without_cold:
        yield (
            f"  {counted(summary.hits_without_cold, 'hit')} without a cold figure, of which "
            "entries tell whole seconds at the most: what they saved is not in this sum. Give the "
            "ledger of the run that compiled them with --earlier."
        )
    if summary.unproven_keys:
        yield (
            f"Not explained by the captured components: {counted(summary.unproven_keys, 'key')}; "
            "`harness cache explain` may miss a cause."
        )
    yield f"the ledger itself took {summary.own_s:.3f} s"


def rate_by_seconds(summary: Summary) -> str:
    """Return the hit rate by seconds, or between what it lies."""
    if not summary.hits_without_cold:
        return _rate(summary.by_seconds, " s", 3)
    low, high = summary.bounds
    if math.isinf(high.numerator):
        return f"unknown, {low.value or 0:.1%} or more"
    if low.denominator == low.numerator:
        return "100.0% (nothing was compiled)"
    between = f"{low.numerator:.3f} to {high.numerator:.3f} s"
    return f"{low.value:.1%} to {high.value:.1%} ({between} by hits, {summary.compile_s:.3f} s not)"


def _rate(rate: Share, unit: str, digits: int) -> str:
    if rate.value is None:
        return "nothing to divide by"
    top, bottom = (f"{number:.{digits}f}{unit}" for number in (rate.numerator, rate.denominator))
    return f"{rate.value:.1%} ({top} of {bottom})"
