"""What the persistent cache really did, request by request: recorded, read back, added up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.cache.saved import cold_seconds, saved_s
from harness.errors import LedgerError as LedgerError
from harness.errors import UsageError
from harness.jaxhooks.events import NO_DIRECTORY, Build, Import, Late, Overridden, Request
from harness.jaxhooks.ledger import Ledger as Ledger
from harness.jaxhooks.ledger import ledger as ledger
from harness.jaxhooks.log_file import SUFFIX
from harness.jaxhooks.parts import Parts, parts_of
from harness.records.recording import Lines, read_lines

if TYPE_CHECKING:
    import pandas as pd  # half a second that requests alone do not take


@dataclass(frozen=True)
class Requests:
    """The requests of a recording, in the order in which they were written."""

    events: tuple[Request, ...]
    parts: Parts
    broken_lines: int = 0
    """Lines that are nothing known: torn by a crash or a full disk, or damaged."""


def read(path: Path | str) -> Requests:
    """Read the requests of a recording; count and leave out lines that are damaged.

    Args:
        path: a ledger, which is a file or a folder of files, or the folder of a profile.

    Raises:
        UsageError: there is no such file.
        LedgerError: it cannot be read, or holds nothing that this version knows.
    """
    path = Path(path)
    files = sorted(path.glob("*" + SUFFIX)) if path.is_dir() else [path]
    try:
        every = [read_lines(file) for file in files]
    except OSError as error:
        kind = UsageError if isinstance(error, FileNotFoundError) else LedgerError
        raise kind(
            f"The recording {path} cannot be read: {error.strerror}. "
            "`harness cache ledger -o FILE -- python program.py` writes one."
        ) from None
    broken = sum(one.broken for one in every)
    if broken and not any(one.lines for one in every):
        raise LedgerError(
            f"{path} is no recording: none of its {broken} lines is one that this version of "
            "harness knows. `harness cache ledger -o FILE -- python program.py` writes one."
        )
    events = [request for one in every for request in _requests_of(one)]
    if path.is_dir():
        events.sort(key=lambda request: request.at_s)
    return Requests(tuple(events), parts_of(path), broken)


def _requests_of(lines: Lines) -> Iterator[Request]:
    """Yield the requests of a file; those of a profile with its process, and when they were."""
    started, jax = lines.started, ""
    for line in lines.lines:
        if isinstance(line, Request):
            yield line
        elif isinstance(line, Import):
            jax = line.versions.get("jax", "")
        elif isinstance(line, Build) and started is not None:
            at_s = started.at_s + (line.end_ns - started.clock_ns) / 1e9
            for one in line.requests:
                yield replace(
                    one, at_s=one.at_s or at_s, pid=started.pid, host=started.host, jax=jax
                )


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
    compile_s: float
    """Spent compiling."""
    saved_s: float
    """Cold compile seconds of the hits, less their load seconds; hits with a cold figure only."""
    hits_without_cold: int
    """Hits of a key that no event here, and no earlier ledger, has compiled: saved is unknown."""
    own_s: float
    """What the recording itself took."""
    limits: dict[str, tuple[float, ...]]
    """The thresholds in effect, in seconds or bytes, by the reason that they decided."""
    overridden: tuple[Overridden, ...]
    """Settings of the environment that did not take effect."""
    late: tuple[Late, ...]
    """Settings that the program changed after they were frozen."""
    relative: tuple[str, ...]
    """Directories that are relative to where the program was started."""
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


def later_directories(events: Iterable[Request]) -> dict[tuple[str, int], tuple[float, str]]:
    """Return, for each process, when it last had a directory, and which."""
    last: dict[tuple[str, int], tuple[float, str]] = {}
    for event in events:
        process = event.host, event.pid
        if event.directory and event.at_s >= last.get(process, (0.0, ""))[0]:
            last[process] = event.at_s, event.directory
    return last


def later_directory(event: Request, last: Mapping[tuple[str, int], tuple[float, str]]) -> str:
    """Return the directory that a request's process used later; empty where it had one, or none.

    Args:
        event: the request.
        last: of all requests of the run, what :func:`later_directories` returns.
    """
    at_s, directory = last.get((event.host, event.pid), (0.0, ""))
    return directory if event.reason == NO_DIRECTORY and at_s > event.at_s else ""


def summarize(events: Iterable[Request], earlier: Iterable[Request] = ()) -> Summary:
    """Add events up.

    Args:
        events: those to count.
        earlier: events of other runs, that only lend their cold compile seconds.
    """
    events = tuple(events)
    cold = cold_seconds([*earlier, *events])
    later = later_directories(events)
    hits = [event for event in events if event.outcome == "hit"]
    with_cold = [event for event in hits if event.key in cold]
    # An entry holds the compile's whole seconds, rounded down.
    stored = [event.stored_compile_s for event in hits if event.key not in cold]
    least_s = sum(whole_s for whole_s in stored if whole_s is not None)
    most_s = math.inf if None in stored else least_s + len(stored)
    unwritten = Counter(event.reason for event in events if event.outcome == "unwritten")
    compiled_s = sum(event.compile_ns for event in events) / 1e9
    spared_s = sum(cold[event.key] for event in with_cold)
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
        compile_s=compiled_s,
        saved_s=sum(saved_s(event, cold) or 0.0 for event in hits),
        hits_without_cold=len(hits) - len(with_cold),
        own_s=sum(event.own_ns for event in events) / 1e9,
        limits=_limits(events),
        overridden=tuple(dict.fromkeys(one for event in events for one in event.overridden)),
        late=tuple(dict.fromkeys(one for event in events for one in event.late)),
        relative=tuple(dict.fromkeys(one.relative for one in events if one.relative)),
        before_directory=sum(later_directory(event, later) != "" for event in events),
        errors=tuple(
            dict.fromkeys(
                text for event in events for text in (event.read_error, event.write_error) if text
            )
        ),
        unproven_keys=sum(not event.key_is_proven for event in events),
    )


def _limits(events: Iterable[Request]) -> dict[str, tuple[float, ...]]:
    limits: dict[str, set[float]] = {}
    for event in events:
        if event.limit is not None:
            limits.setdefault(event.reason, set()).add(event.limit)
    return {reason: tuple(sorted(values)) for reason, values in limits.items()}


_NESTED = ("components", "overridden", "late")
"""Fields of a request that are JSON in a column."""

_SOME = ("load", "compile", "write", "jax_saved")
"""Times that not every request has."""


def frame(events: Iterable[Request], earlier: Iterable[Request] = ()) -> pd.DataFrame:
    """Return a row per request, times in seconds, with `saved_s` beside JAX's `jax_saved_s`."""
    import pandas as pd  # half a second that requests alone do not take

    events = tuple(events)
    cold = cold_seconds([*earlier, *events])
    columns: dict[str, list[Any]] = {}
    for name in (one.name for one in fields(Request) if one.name != "at_s"):
        values = [getattr(event, name) for event in events]
        label = name.removesuffix("_ns")
        if label != name:
            unknown = math.nan if label in _SOME else 0.0
            columns[f"{label}_s"] = [value / 1e9 if value else unknown for value in values]
        elif name in _NESTED:
            columns[name] = [msgspec.json.encode(value).decode() for value in values]
        else:
            columns[name] = values
    columns["saved_s"] = [saved_s(event, cold) for event in events]
    rows = pd.DataFrame(columns)
    rows["at"] = pd.to_datetime([event.at_s for event in events], unit="s", utc=True)
    return rows
