"""How long a sweep will take: as long as processes of the same groups took, or the last time.

An estimate that is off by half is worse than none, so there is none before enough is known.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from harness.measure.job import Job
from harness.records.files import lines
from harness.records.schema import INSTRUMENTS
from harness.stages.scenarios.registry import SCENARIOS

MOST_FILES = 5
"""Of so many commits or nights, the newest, records are looked at."""

KNOWN = 0.75
"""With such a part of the records in groups that were measured, here or before, the others may take
three times as long each before the whole is off by half."""

GROUPS, PART = 8, 0.25
"""So many groups that were measured in this sweep, and such a part of all, are enough as well."""

LAST = 2
"""Of so many processes of a group, the newest, the time counts: the load of a machine changes."""

Kind = tuple[str, str]
"""A group of cases, as its processes are called, and their protocol."""


@dataclass(frozen=True)
class Expected:
    """What there is to measure when a sweep begins to, and how long that is expected to take."""

    records: int
    known: int
    """Of those, such as were measured before on this machine."""
    seconds: float
    """Of all, as though the others took as long as these; 0 where too few are known."""
    is_least: bool = False
    """Whether there may be more of them: `thorough` adds processes."""


class Pace:
    """How long the rest of a sweep takes, by those of its processes that have ended.

    All records of a process come at its end, so their number says little; but the processes of a
    group take about as long as each other.
    """

    def __init__(self, jobs: Iterable[Job], folder: Path) -> None:
        """Begin; `jobs` are all of the sweep, `folder` has the records of earlier ones."""
        self._jobs = list(jobs)
        self._left = {(job.group, job.process): job for job in self._jobs}
        self._kinds = {_kind(job) for job in self._jobs}
        self._earlier_s: dict[Kind, float] = {}
        """How long a record of a group took in earlier sweeps."""
        for file in sorted(folder.glob("*.jsonl"), key=_changed, reverse=True)[:MOST_FILES]:
            if self._kinds <= self._earlier_s.keys():
                break
            for kind, each in _of_file(file).items():
                if kind in self._kinds:
                    self._earlier_s.setdefault(kind, statistics.median(each))
        self._own_s: defaultdict[Kind, list[float]] = defaultdict(list)
        """The same of this sweep, of each process but for the very first: what that reads is in no
        cache of the system's yet."""
        self._since, self._rest_s = time.monotonic(), self._expected_s()
        """When a process ended last, and how long the rest takes from then on."""

    def expected(self, is_least: bool) -> Expected:
        """Return what is expected of the whole sweep, by earlier ones."""
        before = _records(job for job in self._jobs if _kind(job) in self._earlier_s)
        return Expected(_records(self._jobs), before, self._rest_s or 0.0, is_least)

    def end(self, job: Job, seconds: float) -> None:
        """Note that the process of a job has ended, and how long it took."""
        if len(self._left) < len(self._jobs):
            self._own_s[_kind(job)].append(seconds / len(job.cases))
        self._left.pop((job.group, job.process), None)
        # What takes long, or fails, gets no further process: of earlier ones nothing is left.
        self._left = {key: one for key, one in self._left.items() if one.process >= job.process}
        self._since, self._rest_s = time.monotonic(), self._expected_s()

    def left_s(self) -> float | None:
        """Return how long the rest takes; None where too little has been measured."""
        if self._rest_s is None or not self._own_s:
            return None
        return max(0.0, self._rest_s - (time.monotonic() - self._since))

    def _expected_s(self) -> float | None:
        own_s = {kind: statistics.fmean(own[-LAST:]) for kind, own in self._own_s.items()}
        slower = [
            each_s / self._earlier_s[kind]
            for kind, each_s in own_s.items()
            if kind in self._earlier_s
        ]
        factor = statistics.fmean(slower) if slower else 1.0  # other code, or another load
        each_s = {kind: factor * each for kind, each in self._earlier_s.items()} | own_s
        alike = [job for job in self._jobs if _kind(job) in each_s]
        new = [job for job in self._left.values() if _kind(job) not in each_s]
        enough = len(own_s) >= max(GROUPS, PART * len(self._kinds)) or (
            _records(alike) >= KNOWN * _records(self._jobs)
        )
        if new and not enough:
            return None

        def seconds(jobs: Iterable[Job]) -> float:
            return sum(each_s[_kind(job)] * len(job.cases) for job in jobs)

        rest_s = seconds(job for job in self._left.values() if _kind(job) in each_s)
        if new:
            # About half of the time is for starting processes, the other half for cases.
            by_start = sum(map(_starts, new)) / sum(map(_starts, alike))
            rest_s += seconds(alike) / 2 * (by_start + _records(new) / _records(alike))
        return rest_s


def _records(jobs: Iterable[Job]) -> int:
    return sum(len(job.cases) for job in jobs)


def _starts(job: Job) -> int:
    """Return how many processes a job starts."""
    if job.first_call:
        return len(job.cases)
    return 2 if SCENARIOS[job.scenario].directory == "filled" else 1


def _kind(job: Job) -> Kind:
    return job.group, str(job.base["protocol"])


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
