"""Progress of long work: a live line on a terminal; of a sweep, lines of a log elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from harness.cli.output import notes
from harness.measure.estimate import Expected
from harness.measure.outcome import Progress as Message
from harness.records.printable import printable
from harness.records.units import counted, seconds_text

PLAIN_EVERY_S = 5.0
"""Without a terminal, a line of progress is printed at most this often."""


@contextmanager
def building() -> Iterator[Callable[[str, str], None]]:
    """Show on a terminal what is being built, and for how long; nothing elsewhere."""
    columns = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as live:
        task = live.add_task("starting")
        yield lambda label, step: live.update(task, description=f"{label} · {step}")


@contextmanager
def progress() -> Iterator[Callable[[Message], None]]:
    """Show what is being measured: a live line on a terminal, plain lines elsewhere."""
    with _live() if notes.is_terminal else nullcontext(_Plain()) as on_progress:
        yield on_progress


def _failure(message: Message) -> str | None:
    record = message.record
    if message.warning:
        return " ".join(filter(None, (message.workload, message.case, message.warning)))
    if record is None or record.status == "ok":
        return None
    where = f" ({message.machine})" if message.machine else ""
    return f"{record.status}: {message.workload} {message.case}{where}: {record.reason}"


def expected_text(expected: Expected) -> str:
    """Return how much there is to measure, and how long that will take, in a sentence."""
    records = counted(expected.records, "record")
    if not expected.known:
        return f"{records} to measure. No estimate yet: the first measurements will give one."
    least = "at least" if expected.is_least else "about"
    seconds = seconds_text(expected.seconds)
    if expected.known < expected.records:
        new = expected.records - expected.known
        return f"{records} to measure: {least} {seconds} ({new} estimated from similar cases)."
    return f"{records} to measure: {least} {seconds}, as long as the last time on this machine."


def _at(message: Message) -> str:
    parts = (message.machine, message.workload, message.case, message.stage)
    return " · ".join(filter(None, parts))


@contextmanager
def _live() -> Iterator[Callable[[Message], None]]:
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        TextColumn(
            "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    # Drawn twice a second, because what draws it runs beside what is measured.
    with Progress(
        *columns, console=notes, transient=True, expand=True, refresh_per_second=2
    ) as bar:
        task = bar.add_task("starting", total=None)
        expected: list[Expected] = []  # of several sweeps, what is expected of the first is of all

        def on_progress(message: Message) -> None:
            if message.expected is not None:
                if not expected:
                    bar.console.print(expected_text(message.expected), markup=False)
                    expected.append(message.expected)
                return
            text = printable(f"process {message.process + 1}: {_at(message)}")
            bar.update(task, completed=message.done, total=message.total, description=text)
            failed = printable(_failure(message) or "")
            if failed:
                bar.console.print(failed, markup=False)

        yield on_progress


class _Plain:
    """Progress as lines of a log: what is measured and an ETA, now and then; failures at once."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.said = float("-inf")
        self.first: int | None = None
        self.expected: Expected | None = None

    def __call__(self, message: Message) -> None:
        if message.expected is not None:
            if self.expected is None:  # of several sweeps, what is expected of the first is of all
                self.expected, self.began = message.expected, time.monotonic()
                print(expected_text(self.expected), file=sys.stderr, flush=True)
            return
        failed = printable(_failure(message) or "")
        if failed:
            print(failed, file=sys.stderr, flush=True)
        now = time.monotonic()
        if self.first is None:
            self.first = message.done  # reused records are there at once: they say nothing of speed
        last = message.record is not None and message.done == message.total
        if now - self.said < PLAIN_EVERY_S and not last:
            return
        self.said = now
        new = message.done - self.first
        left = None
        if new:
            left = (now - self.began) / new * (message.total - message.done)
        elif self.expected and self.expected.known:
            left = max(0.0, self.expected.seconds - (now - self.began))
        eta = "ETA after the first" if left is None else f"ETA {left:.0f} s"
        print(
            f"[{message.done}/{message.total}] {eta}: process {message.process + 1}: "
            f"{printable(_at(message))}",
            file=sys.stderr,
            flush=True,
        )
