"""What a sweep over a fleet has still to measure, and which workers may take it next."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from harness.engine.job import Job
from harness.engine.plan import Group
from harness.engine.state import SweepState

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


Key = tuple[Team | None, str, str]
"""Team, host and target of the workers that may take a task; None and "" stand for any."""


def keys(teams: Iterable[Team], host: str) -> set[Key]:
    """Return the keys of the tasks that a worker on a host, of some teams, may take."""
    return {
        key
        for team in teams
        for key in (
            (team, host, team.target),
            (team, "", team.target),
            (None, "", team.target),
        )
    }


@dataclass(eq=False)
class Task:
    """The processes of one group, one after the other, on one machine."""

    name: str
    target: str
    number: int
    """Its turn among all tasks."""
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
    gone_s: float = 0.0
    """When who may take it was first seen to be gone; 0 where they are there."""

    @property
    def key(self) -> Key:
        """Who may take it; see :func:`keys`."""
        return self.team, self.host, self.target

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

    def release_if_left(self, there: Collection[Key]) -> None:
        """Release it where those who may take it have been gone for too long.

        `there` holds the keys of all workers.
        """
        if self.team is None or self.key in there:
            self.gone_s = 0.0
        elif not self.gone_s:
            self.gone_s = time.monotonic()
        elif time.monotonic() - self.gone_s > GRACE_S:
            self.release()

    def release(self) -> None:
        """Let another machine begin from the first process: one machine measures all of a case."""
        self.host, self.process, self.gone_s = "", 0, 0.0
        if not self.fixed:
            self.team = None
