"""What a sweep over a fleet has still to measure, and which workers may take it next.

A case stays with its class of machine: the first that measures it. Which that was is kept beside
the records, in `placement.json`, so that the same class measures it at the next commit.
"""

from __future__ import annotations

import heapq
import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.engine.job import Job
from harness.engine.plan import Group
from harness.engine.state import SweepState
from harness.errors import StoreError
from harness.records import json_file

OFF = 1.25
"""A host whose plain loop takes this many times as long as the median of its class, or is as much
faster, is put aside. A convention: hosts of one class differ by a few percent."""

LEAST_HOSTS = 3
"""Of fewer nobody can say which one is off."""

LEAST_LOOPS = 3
"""Processes of a host, before it is judged."""


@dataclass(eq=False)
class Team:
    """The workers of a class that measure alike on one target."""

    target: str
    machine: str
    """What the class is called; with `each_machine`, the machine itself."""
    state: SweepState
    groups: dict[str, Group]


class Takers(NamedTuple):
    """Who may take a task; what is empty stands for any."""

    target: str
    home: str = ""
    team: Team | None = None
    host: str = ""


def keys(teams: Iterable[Team], host: str) -> list[Takers]:
    """Return the keys of the tasks that a worker on a host, of some teams, may take."""
    return [
        key
        for team in teams
        for key in (
            Takers(team.target),
            Takers(team.target, team.machine),
            Takers(team.target, team=team),
            Takers(team.target, team=team, host=host),
        )
    ]


@dataclass(eq=False)
class Task:
    """The processes of one group, one after the other, on one machine."""

    name: str
    target: str
    number: int
    """Its turn among all tasks."""
    home: str = ""
    """The class that does it, since earlier sweeps; empty where none has begun."""
    team: Team | None = None
    """Who does it; None where nobody has begun."""
    fixed: bool = False
    """Whether no other team may do it."""
    host: str = ""
    """Where it was begun; a team may have several."""
    process: int = 0
    """The next one."""
    done: list[int] = field(default_factory=list)
    """The processes that this host has measured."""
    retries: list[str] = field(default_factory=list)
    """What became of earlier attempts at the process that is next."""
    losses: int = 0

    @property
    def key(self) -> Takers:
        """Who may take it."""
        return Takers(self.target, "" if self.team else self.home, self.team, self.host)

    def begin(self, team: Team, host: str) -> Job | None:
        """Return the next job for a team, skipping what is there; None if nothing is left."""
        self.team, self.host = team, host
        while self.process < team.state.rounds:
            job = team.state.job(team.groups[self.name], self.process)
            if job:
                if self.retries:
                    job.base["retries"] = list(self.retries)
                return job
            self.advance()
        return None

    def advance(self) -> None:
        """Go on to the next process."""
        self.process += 1
        self.retries, self.losses = [], 0

    def put_back(self, why: str) -> None:
        """Note that an attempt came to nothing; what nobody has finished a process of is free."""
        self.retries.append(why)
        if self.process == 0:
            self.release()

    def release(self) -> None:
        """Let another machine begin from the first process: one machine measures all of a case."""
        self.host, self.process, self.done = "", 0, []
        if not self.fixed:
            self.team = None

    def forget(self) -> None:
        """Release it, and let what this host has measured be measured again."""
        for process in self.done if self.team else ():
            assert self.team is not None
            self.team.state.forget(self.team.groups[self.name], process)
        self.release()


class Queue:
    """The tasks that wait, the earliest process first, by who may take them."""

    def __init__(self) -> None:
        self._heaps: defaultdict[Takers, list[tuple[int, int, Task]]] = defaultdict(list)

    def __iter__(self) -> Iterator[Task]:
        return (task for heap in self._heaps.values() for *_, task in heap)

    def __bool__(self) -> bool:
        return any(self._heaps.values())

    def push(self, task: Task) -> None:
        """Let a task wait."""
        heapq.heappush(self._heaps[task.key], (task.process, task.number, task))

    def pop(self, allowed: Iterable[Takers]) -> Task | None:
        """Return the first task that one of some keys may take; None where there is none."""
        heaps = [heap for key in allowed if (heap := self._heaps.get(key))]
        return heapq.heappop(min(heaps))[-1] if heaps else None

    def take(self, key: Takers) -> list[Task]:
        """Return all tasks of a key, which then wait no more."""
        return [task for *_, task in self._heaps.pop(key, [])]

    def waited_for(self) -> list[Takers]:
        """Return the keys that tasks wait for."""
        return [key for key, heap in self._heaps.items() if heap]


class HostLoops:
    """The plain loop of the reference program on each host of a class, in nanoseconds."""

    def __init__(self) -> None:
        self._of: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=16))
        self._medians: dict[str, float] = {}

    def outlying(self, host: str, loop_ns: float) -> str:
        """Add a time of a host; return why it is not like the others of its class, or nothing."""
        times = self._of[host]
        times.append(loop_ns)
        if len(times) >= LEAST_LOOPS:
            self._medians[host] = statistics.median(times)
        if host not in self._medians or len(self._medians) < LEAST_HOSTS:
            return ""
        ratio = self._medians[host] / statistics.median(self._medians.values())
        if 1 / OFF < ratio < OFF:
            return ""
        del self._medians[host]
        return (
            f"its plain loop takes {ratio:.2f} times as long as the median of "
            f"{len(self._medians) + 1} hosts of its class"
        )


class Placement(msgspec.Struct):
    """The file `placement.json` of a results tree."""

    schema: int
    placement: dict[str, str]
    """Group of cases to class of machine."""


def read_placement(results: Path) -> dict[str, str]:
    """Return which class each group of cases stays with, as a results tree has it."""
    try:
        return json_file.read(results / "placement.json", Placement).placement
    except FileNotFoundError:
        return {}
    except json_file.DamagedError as error:
        raise StoreError(
            f"{results / 'placement.json'} cannot be read: {error}. Expected an object: group of "
            "cases to class of machine. Restore it, or remove it to place cases anew."
        ) from error


def write_placement(results: Path, added: Mapping[str, str]) -> None:
    """Add to what a results tree says of which class measures what."""
    before = read_placement(results)
    after = {**before, **added}
    if after != before:
        placement = Placement(json_file.SEALED, dict(sorted(after.items())))
        json_file.write(results / "placement.json", placement, "Free space there.")
