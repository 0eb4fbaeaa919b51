"""What the persistent cache did over many runs and hosts, and what the newest run lost and why."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from harness.cache.explain import explain_runs
from harness.cache.ledger import Summary, cold_figures, read, saved_s, summarize
from harness.cache.survey import SubCache, sub_caches
from harness.watch.ledger_events import Event, Requests


@dataclass(frozen=True)
class LedgerRun:
    """One ledger: a run of a program, of however many processes and hosts."""

    name: str
    requests: Requests
    summary: Summary

    @property
    def ended_at_s(self) -> float:
        """When its last request was done, in seconds since 1970."""
        return max((event.at_s for event in self.requests.events), default=0.0)

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases of JAX that it ran."""
        return tuple(sorted({event.jax for event in self.requests.events}))


class ModuleRow(msgspec.Struct, frozen=True):
    """What became of one module.

    Attributes:
        lost_s: Seconds of compiling it in the newest run.
        saved_s: Seconds that its hits saved there; None where no run tells what it takes to
            compile.
        why: Why it was compiled, and left no entry, in the newest run.
    """

    module: str
    requests: int
    hits: int
    lost_s: float
    saved_s: float | None
    all_lost_s: float
    why: str


class HostRow(msgspec.Struct, frozen=True):
    """What one host had of the cache in the newest run.

    Attributes:
        load_s: Seconds that half of the hits stayed below, from request to executable; None
            without a hit.
        load_90_s: Seconds that nine of ten stayed below.
        bytes_per_s: What was read of entries in a second of loading.
        lock_wait_s: Seconds of waiting for the lock of a size cap.
    """

    host: str
    processes: int
    requests: int
    hits: int
    compile_s: float
    load_s: float | None
    load_90_s: float | None
    bytes_per_s: float | None
    lock_wait_s: float


@dataclass(frozen=True)
class CacheReport:
    """All runs, and the newest held against the last good one."""

    runs: tuple[LedgerRun, ...]
    """Oldest first."""
    good: LedgerRun | None
    """The last earlier run that compiled for fewer seconds; None without one."""
    causes: tuple[tuple[str, tuple[str, ...]], ...]
    """What `harness cache explain` says of compiles that the good run spared, and of which
    modules; those that cost the most seconds first."""
    modules: tuple[ModuleRow, ...]
    hosts: tuple[HostRow, ...]
    sub_caches: tuple[SubCache, ...]
    """XLA's own caches in the newest run's directories, as far as they are on this machine."""

    @property
    def newest(self) -> LedgerRun:
        """The run that is reported."""
        return self.runs[-1]

    @property
    def rate_bounds(self) -> tuple[float, float]:
        """Between which shares the newest run's hit rate by seconds lies."""
        summary = self.newest.summary
        least, most = (summary.by_seconds.with_more(more).value for more in summary.unknown_s)
        return least or 0.0, 1.0 if most is None or most != most else most


def report(paths: Sequence[Path]) -> CacheReport:
    """Read ledgers, one a run, and report the newest.

    All of them lend their compile seconds to each other: a hit saves what another run spent.
    """
    known = [(str(path), read(path)) for path in paths]
    known = [(name, requests) for name, requests in known if requests.events]
    everything = [event for _, requests in known for event in requests.events]
    runs = sorted(
        (
            LedgerRun(name, requests, summarize(requests.events, everything))
            for name, requests in known
        ),
        key=lambda run: run.ended_at_s,
    )
    if not runs:
        return CacheReport((), None, (), (), (), ())
    newest, good = runs[-1], _last_good(runs)
    events = newest.requests.events
    directories = sorted({event.directory for event in events if event.directory})
    return CacheReport(
        tuple(runs),
        good,
        _causes(good, newest) if good else (),
        tuple(_modules(events, everything)),
        tuple(_hosts(events)),
        tuple(one for place in directories for one in sub_caches(Path(place))),
    )


def _last_good(runs: Sequence[LedgerRun]) -> LedgerRun | None:
    compiled_s = runs[-1].summary.compile_s
    better = (run for run in reversed(runs[:-1]) if run.summary.compile_s < compiled_s)
    return next(better, None)


def _causes(good: LedgerRun, newest: LedgerRun) -> tuple[tuple[str, tuple[str, ...]], ...]:
    lost_s: dict[str, float] = defaultdict(float)
    of: dict[str, dict[str, None]] = defaultdict(dict)
    for one in explain_runs(good.requests, newest.requests):
        if one.b is not None and one.status != "hit" and one.b.compile_s is not None:
            lost_s[one.verdict] += one.b.compile_s
            of[one.verdict][one.module] = None
    return tuple((text, tuple(of[text])) for text in sorted(of, key=lambda text: -lost_s[text]))


def _modules(events: Sequence[Event], everything: Sequence[Event]) -> list[ModuleRow]:
    cold = cold_figures(everything)
    all_lost_s: dict[str, float] = defaultdict(float)
    for event in everything:
        all_lost_s[event.module] += event.compile_s or 0.0
    rows = []
    for module, own in _grouped(events, lambda event: event.module).items():
        hits = [event for event in own if event.outcome == "hit"]
        saved = [saved_s(event, cold) for event in hits]
        reasons = {event.reason: None for event in own if event.reason}
        rows.append(
            ModuleRow(
                module,
                len(own),
                len(hits),
                sum(event.compile_s or 0.0 for event in own),
                None if None in saved else sum(s for s in saved if s is not None),
                all_lost_s[module],
                "; ".join(reasons),
            )
        )
    return sorted(rows, key=lambda row: (-row.lost_s, -(row.saved_s or 0.0), row.module))


def _hosts(events: Sequence[Event]) -> list[HostRow]:
    rows = []
    for host, own in sorted(_grouped(events, lambda event: event.host).items()):
        hits = [event for event in own if event.outcome == "hit"]
        loads_s = [event.load_s for event in hits if event.load_s is not None]
        read_bytes = sum(event.bytes_in for event in hits)
        rows.append(
            HostRow(
                host,
                len({event.pid for event in own}),
                len(own),
                len(hits),
                sum(event.compile_s or 0.0 for event in own),
                statistics.median(loads_s) if loads_s else None,
                float(np.quantile(loads_s, 0.9)) if loads_s else None,
                read_bytes / sum(loads_s) if sum(loads_s) else None,
                sum(event.lock_wait_s for event in own),
            )
        )
    return rows


def _grouped(events: Iterable[Event], name: Callable[[Event], str]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        found[name(event)].append(event)
    return found
