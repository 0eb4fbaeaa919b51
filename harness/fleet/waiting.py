"""The jobs that nobody is at: who may take which next, found without looking at all of them."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Collection

from harness.fleet.jobs import Task, Team

GRACE_S = 15.0
"""How long a machine whose last worker is lost may take to come back, before what it was measuring
is measured anew elsewhere."""

Key = tuple[Team | None, str, str]
"""Team, host and target of the workers that may take a task; None and "" stand for any."""


class Waiting:
    """Jobs by who may take them; the earliest process of all first, as one machine would do it."""

    def __init__(self) -> None:
        self._heaps: dict[Key, list[tuple[int, int, Task]]] = {}
        self._count = itertools.count()
        self._places: dict[Task, int] = {}
        self._since: dict[tuple[Team, str], float] = {}
        """When the workers of jobs that were begun were first seen to be gone."""

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values()))

    def __bool__(self) -> bool:
        return any(self._heaps.values())

    @property
    def targets(self) -> list[str]:
        """The targets of the jobs, sorted."""
        return sorted({target for (_, _, target), heap in self._heaps.items() if heap})

    def put(self, task: Task) -> None:
        """Let a task wait."""
        place = self._places.setdefault(task, next(self._count))
        heap = self._heaps.setdefault((task.team, task.host, task.target), [])
        heapq.heappush(heap, (task.process, place, task))

    def take(self, teams: Collection[Team], host: str) -> Task | None:
        """Return the next task for a worker on a host that may measure with one of some teams."""
        keys: list[Key] = [
            key
            for team in teams
            for key in (
                (team, host, team.target),
                (team, "", team.target),
                (None, "", team.target),
            )
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
                self._release(key)

    def _release(self, key: Key) -> None:
        for _, _, task in self._heaps.pop(key):
            task.release()
            self.put(task)
