"""What a sweep over a fleet has still to measure, and which workers may take it next."""

from __future__ import annotations

import functools
import heapq
import itertools
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from harness.engine.job import Job
from harness.engine.plan import Group
from harness.engine.state import SweepState

LOSSES = 3
"""A job that came to nothing this often is not sent again."""

GRACE_S = 15.0
"""How long a machine whose last worker is lost may take to come back, before what it was measuring
is measured anew elsewhere."""


@dataclass(eq=False)
class Team:
    """The workers that measure alike on one target, and count as one machine."""

    target: str
    state: SweepState
    groups: dict[str, Group]

    @functools.cached_property
    def _known(self) -> Counter[str]:
        return Counter(key for key, _ in self.state.before)

    def begun(self, group: str) -> int:
        """Return how many records of a group there were before the sweep."""
        return sum(self._known[ref.key] for ref in self.groups[group].refs)


@dataclass(eq=False)
class Task:
    """The processes of one group, one after the other, on one machine."""

    name: str
    target: str
    team: Team | None = None
    """Who does it; None where nobody has begun."""
    fixed: bool = False
    """Whether no other team may do it."""
    host: str = ""
    """Where it was begun; a team may have several."""
    process: int = 0
    """The next one."""
    retries: list[str] = field(default_factory=list)
    """What became of earlier attempts at the process that is next."""
    losses: int = 0

    def begin(self, team: Team, host: str, limit: int) -> Job | None:
        """Return the next job for a team, skipping what is there; None if nothing is left."""
        self.team, self.host = team, host
        while self.process < limit:
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
        self.host, self.process = "", 0
        if not self.fixed:
            self.team = None


Key = tuple[Team | None, str, str]
"""Team, host and target of the workers that may take a task; None and "" stand for any."""


class Queue:
    """Tasks by who may take them; the earliest process of all first, as one machine would do it."""

    def __init__(self) -> None:
        self._heaps: dict[Key, list[tuple[int, int, Task]]] = {}
        self._count = itertools.count()
        self._places: dict[Task, int] = {}
        self._since: dict[tuple[Team, str], float] = {}
        """When the workers of tasks that were begun were first seen to be gone."""

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values()))

    def __bool__(self) -> bool:
        return any(self._heaps.values())

    @property
    def targets(self) -> list[str]:
        """The targets of the tasks, sorted."""
        return sorted({target for (_, _, target), heap in self._heaps.items() if heap})

    def put(self, task: Task) -> None:
        """Let a task wait."""
        place = self._places.setdefault(task, next(self._count))
        heap = self._heaps.setdefault((task.team, task.host, task.target), [])
        heapq.heappush(heap, (task.process, place, task))

    def take(self, teams: Collection[Team], host: str) -> Task | None:
        """Return the next task for a worker on a host that may measure with one of some teams."""
        keys: list[Key] = [
            (who, where, team.target)
            for team in teams
            for who, where in ((team, host), (team, ""), (None, ""))
        ]
        heaps = [heap for key in keys if (heap := self._heaps.get(key))]
        if not heaps:
            return None
        return heapq.heappop(min(heaps, key=lambda heap: heap[0][:2]))[2]

    def look_for(self, there: Collection[tuple[Team, str]]) -> None:
        """Release what was begun on machines that have been gone for too long.

        `there` holds the teams and hosts of all workers.
        """
        back = {*there, *((team, "") for team, _ in there)}
        for known in back & self._since.keys():
            del self._since[known]
        now = time.monotonic()
        for key, heap in list(self._heaps.items()):
            team, host, _ = key
            if team is None or not heap or (team, host) in back:
                continue
            if now - self._since.setdefault((team, host), now) > GRACE_S:
                del self._since[team, host]  # whoever is begun there later has as long again
                for _, _, task in self._heaps.pop(key):
                    task.release()
                    self.put(task)
