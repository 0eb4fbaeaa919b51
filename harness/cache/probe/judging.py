"""What a row is, and how its processes are judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from harness.cache.probe.findings import Run
from harness.cache.probe.runner import Bench


@dataclass(frozen=True)
class Outcome:
    """Whether a row went as expected, and what happened in words."""

    passed: bool
    happened: str


@dataclass(frozen=True)
class Row:
    """One experiment.

    Attributes:
        name: What `--row` calls it.
        title: What the table calls it.
        expectation: What a user would expect.
        experiment: Does it; its docstring is the explanation.
    """

    name: str
    title: str
    expectation: str
    experiment: Callable[[Bench], Outcome]

    @property
    def explanation(self) -> str:
        """Why the row is there, and why JAX does what it does."""
        return inspect.getdoc(self.experiment) or ""


def told(run: Run) -> str:
    """What a process did, in a few words."""
    if run.killed:
        return "was killed"
    if run.error:
        return f"failed: {run.error}"
    if not run.correct:
        return "gave a wrong result"
    how = "hits" if run.hit else "compiles"
    return f"{how} and warns" if run.warnings else how


def hits(run: Run) -> Outcome:
    """The process must be answered by the cache, in silence."""
    return Outcome(run.hit and not run.warnings, told(run))


def misses(run: Run) -> Outcome:
    """The process must compile for itself."""
    return Outcome(run.fine and run.requests > 0 and not run.hits, told(run))


def heals(damaged: Run, later: Run) -> Outcome:
    """The process that meets the damage must run, and the one after it must be answered."""
    return Outcome(damaged.fine and later.hit, f"{told(damaged)}; the run after it {told(later)}")
