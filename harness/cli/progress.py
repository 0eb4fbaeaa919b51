"""Progress of long work: a live line on a terminal; of a sweep, lines of a log elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from math import inf

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from harness.cli.output import notes
from harness.measure.estimate import Expected
from harness.measure.outcome import Progress as Message
from harness.measure.outcome import Turns
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
    """Return how much there is to measure, and how long it took the last time, in sentences."""
    records = counted(expected.records, "record")
    if not expected.seconds:
        return f"{records} to measure. No estimate yet: the first measurements will give one."
    which = "they" if expected.known == expected.records else f"{expected.known} of them"
    seconds = seconds_text(expected.seconds * expected.known / expected.records)
    more = " A case that scatters gets more." * expected.is_least
    return f"{records} to measure. The last time on this machine {which} took {seconds}.{more}"


def turns_text(turns: Turns) -> str:
    """Return how many rounds there may be, and how long they take, in a sentence."""
    limit = counted(turns.limit, "round")
    if turns.round_s is None:
        return f"At most {limit}, in turns. No estimate yet: the first round will give one."
    each, look, most = (
        seconds_text(min(turns.round_s * rounds, turns.most_s or inf))
        for rounds in (1, turns.look, turns.limit)
    )
    few = f"{turns.look} rounds about {look}, " * (turns.look < turns.limit)
    return f"A round takes about {each}: {few}{limit} at most {most}."


def _beginning(message: Message) -> str:
    """Return what is printed where measuring begins; empty for any other message."""
    if message.turns:
        return turns_text(message.turns)
    return expected_text(message.expected) if message.expected else ""


def _at(message: Message) -> str:
    parts = (message.machine, message.workload, message.case, message.stage)
    return " · ".join(filter(None, parts))


class _Left(ProgressColumn):
    """The time that is left, where it is known; it runs on between two messages."""

    def render(self, task: Task) -> Text:
        until = task.fields.get("until")
        left_s = 0 if until is None else max(0, round(until - time.monotonic()))
        return Text("" if until is None else f"ETA {timedelta(seconds=left_s)}")


@contextmanager
def _live() -> Iterator[Callable[[Message], None]]:
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        _Left(),
        TextColumn(
            "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    # Drawn twice a second, because what draws it runs beside what is measured.
    with Progress(
        *columns, console=notes, transient=True, expand=True, refresh_per_second=2
    ) as bar:
        task = bar.add_task("starting", total=None)

        def on_progress(message: Message) -> None:
            if begins := _beginning(message):
                bar.console.print(begins, markup=False)
                return
            text = printable(f"process {message.process + 1}: {_at(message)}")
            until = None if message.left_s is None else time.monotonic() + message.left_s
            done, total = message.done, message.total
            bar.update(task, completed=done, total=total, description=text, until=until)
            failed = printable(_failure(message) or "")
            if failed:
                bar.console.print(failed, markup=False)

        yield on_progress


class _Plain:
    """Progress as lines of a log: what is measured and an ETA, now and then; failures at once."""

    def __init__(self) -> None:
        self.printed_at = -inf

    def __call__(self, message: Message) -> None:
        if begins := _beginning(message):
            print(begins, file=sys.stderr, flush=True)
            return
        failed = printable(_failure(message) or "")
        if failed:
            print(failed, file=sys.stderr, flush=True)
        now = time.monotonic()
        last = message.record is not None and message.done == message.total
        if not message.total or (now - self.printed_at < PLAIN_EVERY_S and not last):
            return  # a warning of no case has no number
        self.printed_at = now
        eta = "" if message.left_s is None else f" ETA {message.left_s:.0f} s:"
        print(
            f"[{message.done}/{message.total}]{eta} process {message.process + 1}: "
            f"{printable(_at(message))}",
            file=sys.stderr,
            flush=True,
        )
