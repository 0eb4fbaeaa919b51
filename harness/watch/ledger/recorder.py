"""Record what JAX's persistent compilation cache really does, request by request, in any process.

    with ledger("run.jsonl") as book:
        step(x)                      # whatever compiles in here
    summarize(book.events).hits

JAX's own counters count writes as misses and whole seconds as savings; the ledger replaces a few
of JAX's functions while it is open, notes what they did by its own clock, and puts them back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.watch.ledger import watching
from harness.watch.ledger.events import Book, Event, Parts, append, open_to_append, parts_of


@dataclass
class Ledger:
    """An open ledger: the events of this process so far."""

    path: Path | None = None
    events: list[Event] = field(default_factory=list)
    parts: Parts = field(default_factory=Parts)
    failures: list[str] = field(default_factory=list)
    """What went wrong inside the ledger itself; the program did not notice."""

    def book(self) -> Book:
        """Return what is known so far, as it would be read from a file."""
        return Book(tuple(self.events), self.parts)


@contextmanager
def ledger(path: Path | str | None = None) -> Iterator[Ledger]:
    """Record every compile request of this process, on all its threads, while it is open.

    Several may be open at once; each gets every request.

    Args:
        path: a file to append events to, shared with any other process; in memory only without it.

    Raises:
        LedgerError: if the file cannot be written, or the running JAX is not one that is known.
    """
    found = Ledger(Path(path) if path is not None else None)
    descriptor = None
    if found.path is not None:
        found.parts = parts_of(found.path)
        descriptor = open_to_append(found.path)
    reader = _reader(found, descriptor, keep=True)
    try:
        watching.start(reader)
        try:
            yield found
        finally:
            watching.stop(reader)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def open_until_exit(path: Path | str) -> Ledger:
    """Record every compile request until this process ends, in a file and not in memory.

    Raises:
        LedgerError: as :func:`ledger`.
    """
    found = Ledger(Path(path), parts=parts_of(Path(path)))
    watching.start(_reader(found, open_to_append(Path(path)), keep=False))
    return found


def _reader(found: Ledger, descriptor: int | None, keep: bool) -> watching.Reader:
    def receive(event: Event) -> None:
        if keep:
            found.events.append(event)
        if descriptor is not None:
            append(descriptor, event)

    return watching.Reader(receive, found.failures.append, found.parts)
