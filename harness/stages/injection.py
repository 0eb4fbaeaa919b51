"""Slow-downs that are put in on purpose: real extra work inside the clock.

`harness aa` finds with them which change this machine can show. A measuring process runs a plain
Python loop of a fixed number of turns inside the timed region of a stage: before the call of
`trace`, `lower`, `compile`, and in every call of `execute` and `compute`. How long a turn takes is
measured when the process starts. Without a slow-down the code in the clock is what it always is.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from harness.records.schema import digest

_TURNS = 20_000
_ROUNDS = 15

_clock = time.perf_counter_ns


class Injected(msgspec.Struct, frozen=True):
    """Which stages are lengthened, by how much, and of what."""

    effects: dict[str, float]
    """Stage to effect: 0.2 for a fifth more time."""
    medians_ns: dict[str, dict[str, float]]
    """:func:`name` of a case to its median by stage, in nanoseconds, without the extra work."""

    @property
    def mark(self) -> str:
        """What a record's protocol says of it; another size of the work is another mark."""
        effects = ", ".join(f"{stage} +{effect:g}" for stage, effect in self.effects.items())
        return f"{effects} of {digest(sorted(self.medians_ns.items()))[:8]}"

    def extra_ns(self, workload: str, case: str) -> dict[str, float]:
        """Return the extra work for a case by stage, for the stages whose median is known."""
        medians = self.medians_ns.get(name(workload, case), {})
        return {
            stage: effect * medians[stage]
            for stage, effect in self.effects.items()
            if stage in medians
        }


def name(workload: str, case: str) -> str:
    """Return what a case is known by in :class:`Injected`."""
    return f"{workload} {case}"


class Work(NamedTuple):
    """What the extra work costs in this process, in nanoseconds."""

    call_ns: float
    """Of a call that is lengthened, before its first turn."""
    turn_ns: float

    def turns(self, extra_ns: Mapping[str, float]) -> dict[str, int]:
        """Return how many turns take `extra_ns`, by stage: one at the least."""
        return {
            stage: max(1, round((ns - self.call_ns) / self.turn_ns))
            for stage, ns in extra_ns.items()
        }


def measure_work() -> Work:
    """Measure what a turn costs, and what it costs to have any: the least of several rounds."""

    def once() -> None:
        pass

    def round_ns(step: Callable[[], None], calls: int) -> float:
        begin = _clock()
        for _ in itertools.repeat(None, calls):
            step()
        return (_clock() - begin) / calls

    def least(step: Callable[[], None], calls: int) -> float:
        return min(round_ns(step, calls) for _ in range(_ROUNDS))

    many, one, none = lengthened(once, _TURNS), lengthened(once, 1), once
    turn_ns = least(many, 1) / _TURNS
    return Work(max(0.0, least(one, 1_000) - least(none, 1_000) - turn_ns), turn_ns)


def lengthened(step: Callable[..., Any], turns: int) -> Callable[..., Any]:
    """Return `step` with a loop of `turns` before it; `step` itself where there are none.

    Before it, because what is called may go on in another thread after it has returned.
    """
    return functools.partial(_after_turns, step, turns) if turns else step


def _after_turns(step: Callable[..., Any], turns: int, *arguments: Any) -> Any:
    total = 0
    for _ in itertools.repeat(None, turns):
        total = (total + 7) % 251  # integers that Python keeps: every turn costs the same
    return step(*arguments)


def fingerprint(program: str, extra_ns: Mapping[str, float]) -> str:
    """Return the fingerprint of a program with its extra work: another one, if there is any.

    With its own, a verdict would take the lengthened stage for the same program in another
    environment.
    """
    if not program or not extra_ns:
        return program
    return digest(program, sorted(extra_ns.items()))
