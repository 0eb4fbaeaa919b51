"""What the persistent cache did over many runs and hosts, what the newest run lost, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.cache.explain import Why, explain_runs
from harness.cache.ledger import Requests, Summary, frame, summarize
from harness.cache.survey import SubCache, sub_caches
from harness.jaxhooks.events import Request


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


@dataclass(frozen=True)
class Runs:
    """All runs, and the newest held against the last good one."""

    all: tuple[LedgerRun, ...]
    """Oldest first."""
    good: LedgerRun | None
    """The last earlier run that compiled for fewer seconds; None without one."""
    causes: tuple[tuple[Why, tuple[str, ...]], ...]
    """Why the newest run compiled what the good one did not, and which modules; those that cost
    the most seconds first."""
    modules: pd.DataFrame
    """A row per module of the newest run: `requests`, `hits`; `lost_s`, seconds of compiling it;
    `saved_s`, what its hits saved, NaN where no run tells what it takes to compile; `all_lost_s`,
    seconds of compiling it in all runs; `why` it was compiled, and left no entry."""
    hosts: pd.DataFrame
    """A row per host of the newest run: `processes`, `requests`, `hits`, `compile_s`; `load_s` and
    `load_90_s`, seconds that half and nine of ten hits stayed below, from request to executable;
    `bytes_per_s`, what was read of entries in a second of loading; `lock_wait_s`, seconds of
    waiting for the lock of a size cap."""
    sub_caches: tuple[SubCache, ...]
    """XLA's own caches in the newest run's directories, as far as they are on this machine."""

    @property
    def newest(self) -> LedgerRun:
        """The run that is reported."""
        return self.all[-1]

    @property
    def rate_bounds(self) -> tuple[float, float]:
        """Between which shares the newest run's hit rate by seconds lies."""
        least, most = (share.value for share in self.newest.summary.bounds)
        return least or 0.0, 1.0 if most is None or most != most else most


def compare_runs(ledgers: Mapping[str, Requests]) -> Runs | None:
    """Hold the newest run against the last good one; None where no ledger has an event.

    All of them lend their compile seconds to each other: a hit saves what another run spent.

    Args:
        ledgers: what :func:`harness.cache.ledger.read` gives, one a run, by name.
    """
    runs = sorted(
        (
            LedgerRun(name, run, summarize(run.events, _events(ledgers, but=name)))
            for name, run in ledgers.items()
            if run.events
        ),
        key=lambda run: run.ended_at_s,
    )
    if not runs:
        return None
    newest = runs[-1]
    compiled_s = newest.summary.compile_s
    good = next((run for run in reversed(runs) if run.summary.compile_s < compiled_s), None)
    events = newest.requests.events
    directories = sorted({event.directory for event in events if event.directory})
    rows = _rows(frame(events, _events(ledgers, but=newest.name)))
    return Runs(
        tuple(runs),
        good,
        _causes(good, newest) if good else (),
        _modules(rows, _rows(frame(_events(ledgers)))),
        _hosts(rows),
        tuple(one for place in directories for one in sub_caches(Path(place))),
    )


def _events(ledgers: Mapping[str, Requests], but: str = "") -> list[Request]:
    return [event for name, run in ledgers.items() if name != but for event in run.events]


def _causes(good: LedgerRun, newest: LedgerRun) -> tuple[tuple[Why, tuple[str, ...]], ...]:
    lost_ns: dict[Why, int] = defaultdict(int)
    of: dict[Why, dict[str, None]] = defaultdict(dict)
    for one in explain_runs(good.requests, newest.requests):
        if one.b is not None and not one.hit and one.b.compile_ns:
            lost_ns[one.why] += one.b.compile_ns
            of[one.why][one.module] = None
    return tuple((why, tuple(of[why])) for why in sorted(of, key=lambda why: -lost_ns[why]))


def _rows(events: pd.DataFrame) -> pd.DataFrame:
    """Return a row per request, in which a miss saved, loaded and read nothing."""
    hit = events["outcome"] == "hit"
    return events.assign(
        hit=hit,
        compile_s=events["compile_s"].astype(float),
        saved_s=events["saved_s"].astype(float).where(hit, 0.0),
        load_s=events["load_s"].astype(float).where(hit),
        bytes_in=events["bytes_in"].where(hit, 0),
    )


def _modules(newest: pd.DataFrame, every: pd.DataFrame) -> pd.DataFrame:
    modules = newest.groupby("module").agg(
        requests=("hit", "size"),
        hits=("hit", "sum"),
        lost_s=("compile_s", "sum"),
        saved_s=("saved_s", lambda saved_s: saved_s.sum(skipna=False)),
        why=("reason", lambda reasons: "; ".join(filter(None, reasons.unique()))),
    )
    modules.insert(4, "all_lost_s", every.groupby("module")["compile_s"].sum())
    modules = modules.reset_index()
    return modules.sort_values(["lost_s", "saved_s", "module"], ascending=[False, False, True])


def _hosts(newest: pd.DataFrame) -> pd.DataFrame:
    hosts = newest.groupby("host")
    table = hosts.agg(
        processes=("pid", "nunique"),
        requests=("hit", "size"),
        hits=("hit", "sum"),
        compile_s=("compile_s", "sum"),
        load_s=("load_s", "median"),
        load_90_s=("load_s", lambda load_s: load_s.quantile(0.9)),
        bytes_per_s=("bytes_in", "sum"),
        lock_wait_s=("lock_wait_s", "sum"),
    )
    table["bytes_per_s"] /= hosts["load_s"].sum()
    return table.reset_index()
