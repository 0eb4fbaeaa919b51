"""What the persistent cache really did, request by request: recorded, read back, added up."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.errors import LedgerError as LedgerError
from harness.errors import UsageError
from harness.records.files import lines
from harness.records.json_file import SEALED
from harness.watch.ledger import Ledger as Ledger
from harness.watch.ledger import ledger as ledger
from harness.watch.ledger_events import FILE_SUFFIX, NO_DIRECTORY, SCHEMA, parts_of
from harness.watch.ledger_events import Component as Component
from harness.watch.ledger_events import Event as Event
from harness.watch.ledger_events import Late as Late
from harness.watch.ledger_events import Overridden as Overridden
from harness.watch.ledger_events import Requests as Requests
from harness.watch.log_file import is_sealed

if TYPE_CHECKING:
    import pandas as pd  # half a second that events alone do not take

NO_REQUEST = "the program compiled nothing, or ran a Python that ignores PYTHONPATH (-I, -E, -S)."
"""Why a ledger may be empty."""


def read(path: Path | str) -> Requests:
    """Read a ledger, a file or a folder of files; count and leave out lines that are no event."""
    path = Path(path)
    files = sorted(path.glob("*" + FILE_SUFFIX)) if path.is_dir() else [path]
    events: list[Event] = []
    broken = 0
    try:
        for file in files:
            for line in lines(file):
                event = _decoded(line.rstrip(b"\n")) if line else None
                if event is None:
                    broken += 1
                else:
                    events.append(event)
    except OSError as error:
        kind = UsageError if isinstance(error, FileNotFoundError) else LedgerError
        raise kind(
            f"The ledger {path} cannot be read: {error.strerror}. "
            "`harness cache ledger -o FILE -- python program.py` writes one."
        ) from None
    if broken and not events:
        raise LedgerError(
            f"{path} is no ledger: none of its {broken} lines is an event that this version of "
            "harness knows. `harness cache ledger -o FILE -- python program.py` writes one."
        )
    if path.is_dir():
        events.sort(key=lambda event: event.at_s)
    return Requests(tuple(events), parts_of(path), broken)


_decoder = msgspec.json.Decoder(Event)


def _decoded(line: bytes) -> Event | None:
    """Return the event of a line; None where it is damaged, or of a release to come."""
    closed = is_sealed(line)
    if closed is False:
        return None
    try:
        line.decode()
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    known = 1 <= event.schema <= SCHEMA and (closed or event.schema < SEALED)
    sizes = event.bytes_in, event.bytes_out, event.entry_bytes or 0, event.stored_compile_s or 0
    sound = 0 <= event.at_s < MOST_S and all(0 <= size < 2**63 for size in sizes)
    return event if known and sound else None


MOST_S = 1e11
"""Seconds since 1970, as far as dates go here; a clock that is wrong is far below."""


@dataclass(frozen=True)
class Share:
    """A share, with the two numbers that it comes from."""

    numerator: float
    denominator: float

    def with_more(self, more: float) -> Share:
        """Return it with more in what is divided, and so in what divides as well."""
        return Share(self.numerator + more, self.denominator + more)

    @property
    def value(self) -> float | None:
        """Numerator over denominator; None where there is nothing to divide by."""
        return self.numerator / self.denominator if self.denominator else None


@dataclass(frozen=True)
class Summary:
    """What the cache did over all events, of whatever processes."""

    processes: int
    requests: int
    hits: int
    written: int
    """Misses that left an entry."""
    unwritten: dict[str, int]
    """Misses that left none, by reason, the most frequent first."""
    failed: int
    """Requests that raised into the program."""
    read_errors: int
    write_errors: int
    bytes_in: int
    bytes_out: int
    by_count: Share
    """Hits of all requests."""
    by_seconds: Share
    """Cold seconds of the hits, of those and the seconds compiled; hits with a cold figure only."""
    unknown_s: tuple[float, float]
    """The least and the most cold seconds of the other hits, by the whole seconds that their
    entries hold; infinite where JAX does not tell those."""
    load_s: float
    """Spent loading hits."""
    compile_s: float
    """Spent compiling."""
    saved_s: float
    """Cold compile seconds of the hits, less their load seconds; hits with a cold figure only."""
    hits_without_cold: int
    """Hits of a key that no event here, and no earlier ledger, has compiled: saved is unknown."""
    jax_saved_s: float
    """The sum of JAX's own `compile_time_saved_sec`, which knows whole seconds only."""
    own_s: float
    """What the ledger itself took."""
    limits: dict[str, tuple[float, ...]]
    """The thresholds in effect, in seconds or bytes, by the reason that they decided."""
    overridden: tuple[Overridden, ...]
    """Settings of the environment that did not take effect."""
    late: tuple[Late, ...]
    """Settings that the program changed after they were frozen."""
    before_directory: int
    """Requests before a directory was set, in processes that set one later."""
    errors: tuple[str, ...]
    """The texts of what went wrong in reading and writing."""
    unproven_keys: int
    """Keys that the captured components do not give when hashed again; should be 0."""

    @property
    def bounds(self) -> tuple[Share, Share]:
        """Between which shares the hit rate by seconds lies."""
        least_s, most_s = self.unknown_s
        return self.by_seconds.with_more(least_s), self.by_seconds.with_more(most_s)


def later_directory(event: Event, events: Iterable[Event]) -> str:
    """Return the directory that a request's process used later; empty where it had one, or none."""
    if event.reason != NO_DIRECTORY:
        return ""
    process = event.host, event.pid
    later = (one for one in events if one.directory and (one.host, one.pid) == process)
    return next((one.directory for one in later if one.at_s > event.at_s), "")


def cold_figures(events: Iterable[Event]) -> dict[str, float]:
    """Return the median compile seconds of every key that some process compiled."""
    found: dict[str, list[float]] = {}
    for event in events:
        if event.key and event.compile_s is not None and event.outcome != "failed":
            found.setdefault(event.key, []).append(event.compile_s)
    return {key: statistics.median(seconds) for key, seconds in found.items()}


def saved_s(event: Event, cold: dict[str, float]) -> float | None:
    """Return the compile seconds that a hit saved; None for a miss or without a cold figure."""
    if event.outcome != "hit" or event.load_s is None or event.key not in cold:
        return None
    return cold[event.key] - event.load_s


def summarize(events: Iterable[Event], earlier: Iterable[Event] = ()) -> Summary:
    """Add events up.

    Args:
        events: those to count.
        earlier: events of other runs, that only lend their cold compile seconds.
    """
    events = tuple(events)
    cold = cold_figures([*earlier, *events])
    hits = [event for event in events if event.outcome == "hit"]
    known = [event for event in hits if event.key in cold]
    # An entry holds the compile's whole seconds, rounded down.
    stored = [event.stored_compile_s for event in hits if event.key not in cold]
    least_s = sum(whole_s for whole_s in stored if whole_s is not None)
    most_s = math.inf if None in stored else least_s + len(stored)
    unwritten = Counter(event.reason for event in events if event.outcome == "unwritten")
    compiled_s = sum(event.compile_s or 0.0 for event in events)
    spared_s = sum(cold[event.key] for event in known)
    return Summary(
        processes=len({(event.host, event.pid) for event in events}),
        requests=len(events),
        hits=len(hits),
        written=sum(event.outcome == "written" for event in events),
        unwritten=dict(unwritten.most_common()),
        failed=sum(event.outcome == "failed" for event in events),
        read_errors=sum(bool(event.read_error) for event in events),
        write_errors=sum(bool(event.write_error) for event in events),
        bytes_in=sum(event.bytes_in for event in events),
        bytes_out=sum(event.bytes_out for event in events),
        by_count=Share(len(hits), len(events)),
        by_seconds=Share(spared_s, spared_s + compiled_s),
        unknown_s=(least_s, most_s),
        load_s=sum(event.load_s or 0.0 for event in hits),
        compile_s=compiled_s,
        saved_s=sum(saved_s(event, cold) or 0.0 for event in hits),
        hits_without_cold=len(hits) - len(known),
        jax_saved_s=sum(event.jax_saved_s or 0.0 for event in hits),
        own_s=sum(event.own_s for event in events),
        limits=_limits(events),
        overridden=tuple(dict.fromkeys(one for event in events for one in event.overridden)),
        late=tuple(dict.fromkeys(one for event in events for one in event.late)),
        before_directory=sum(later_directory(event, events) != "" for event in events),
        errors=tuple(
            dict.fromkeys(
                text for event in events for text in (event.read_error, event.write_error) if text
            )
        ),
        unproven_keys=sum(not event.components_prove_key for event in events),
    )


def _limits(events: Iterable[Event]) -> dict[str, tuple[float, ...]]:
    limits: dict[str, set[float]] = {}
    for event in events:
        if event.limit is not None:
            limits.setdefault(event.reason, set()).add(event.limit)
    return {reason: tuple(sorted(values)) for reason, values in limits.items()}


_NESTED = ("schema", "components", "overridden", "late")
"""Fields of an event that are no column as they are: the first is none, the others are JSON."""


def frame(events: Iterable[Event], earlier: Iterable[Event] = ()) -> pd.DataFrame:
    """Return a row per event, with `saved_s` beside JAX's `jax_saved_s`."""
    import pandas as pd  # half a second that events alone do not take

    events = tuple(events)
    cold = cold_figures([*earlier, *events])
    columns = [one.name for one in fields(Event) if one.name not in _NESTED]
    rows = [
        (
            *(getattr(event, name) for name in columns),
            saved_s(event, cold),
            *(msgspec.json.encode(getattr(event, name)).decode() for name in _NESTED[1:]),
        )
        for event in events
    ]
    found = pd.DataFrame(rows, columns=[*columns, "saved_s", *_NESTED[1:]])
    found["at"] = pd.to_datetime(found.pop("at_s"), unit="s", utc=True)
    return found
