"""How long a sweep will take: as long as processes of the same groups took the last time."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from harness.measure.job import Job
from harness.records.files import lines
from harness.records.schema import INSTRUMENTS

MOST_FILES = 5
"""Of so many commits or nights, the newest, records are looked at."""

Kind = tuple[str, str]
"""A group of cases, as its processes are called, and their protocol."""


@dataclass(frozen=True)
class Expected:
    """What there is to measure when a sweep begins to, and how long that is expected to take."""

    records: int
    known: int
    """Of those, such as were measured before on this machine."""
    seconds: float
    """Of all, as though the others took as long as these; 0 where none is known."""
    is_least: bool = False
    """Whether there may be more of them: `thorough` adds processes."""

    def times(self, sweeps: int) -> Expected:
        """Return what is expected of so many such sweeps."""
        seconds = self.seconds * sweeps
        return Expected(self.records * sweeps, self.known * sweeps, seconds, self.is_least)


def expected(jobs: Iterable[Job], folder: Path, is_least: bool) -> Expected:
    """Return what is expected of jobs, from the records files of a machine in `folder`."""
    wanted: Counter[Kind] = Counter()
    for job in jobs:
        wanted[job.group, str(job.base["protocol"])] += len(job.cases)
    took: dict[Kind, float] = {}
    for file in sorted(folder.glob("*.jsonl"), key=_changed, reverse=True)[:MOST_FILES]:
        if wanted.keys() <= took.keys():
            break
        for kind, each in _of_file(file).items():
            if kind in wanted:
                took.setdefault(kind, statistics.median(each))
    measured = sum(wanted[kind] for kind in took)
    seconds = sum(wanted[kind] * each_s for kind, each_s in took.items())
    every = wanted.total()
    return Expected(every, measured, seconds * every / measured if measured else 0.0, is_least)


class _Written(msgspec.Struct):
    """What of a record tells how long its process took."""

    key: str
    replicate: str
    workload: str
    protocol: str
    sweep: str
    started_at_ms: int


_decode = msgspec.json.Decoder(_Written).decode


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _of_file(file: Path) -> dict[Kind, list[float]]:
    """Return the seconds per record of each process that another one of its sweep followed.

    Processes come one after the other: each lasts until the next begins.
    """
    began: defaultdict[str, defaultdict[int, defaultdict[Kind, set[str]]]]
    began = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    try:
        for line in lines(file):
            try:
                one = _decode(line or b"")
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            kind = one.replicate.rpartition("#")[0], one.protocol
            # A record is written again when something is added to it, and counts once.
            own = () if one.workload in INSTRUMENTS else (one.key,)
            began[one.sweep][one.started_at_ms][kind].update(own)
    except OSError:
        return {}
    seconds: defaultdict[Kind, list[float]] = defaultdict(list)
    for processes in began.values():
        for start, end in pairwise(sorted(processes)):
            records = processes[start]
            number = sum(map(len, records.values()))
            for kind in records:
                seconds[kind].append((end - start) / 1e3 / max(number, 1))
    return seconds
