"""Calls of a finished program on the clock: one by one, and in blocks of readings."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

EXECUTE_S = 0.020
"""How long one pass runs a program, in seconds; a longer call still runs once."""

BLOCKS = 4
"""Blocks of readings that one pass takes of `execute`; each block gives its least reading."""

DISPATCHES = 8
"""Calls that one pass times for `dispatch`."""

CLOCK_SHARE = 0.01
"""The clock's own cost may be at most this part of a reading."""

DONATED_BYTES = 64 * 2**20
"""Fresh buffers made ahead for a block of donating calls take at most this much."""


@dataclass(frozen=True)
class Grouping:
    """How a program's calls are grouped for the clock."""

    blocks: int
    readings: int
    """Readings of the clock in a block."""
    number: int
    """Calls in a reading: one, if a call is long enough for the clock."""
    dispatches: int


@dataclass(frozen=True)
class Calls:
    """What is called, with what, and how its result is waited for."""

    call: Callable[..., Any]
    supply: Iterator[tuple[Any, ...]]
    """The arguments of one call after another."""
    ready: Callable[[Any], Any]
    """Returns when a result is there."""
    donated_bytes: int | None = None
    """What is donated in a call and made anew for the next; None where nothing is."""


class Timed(NamedTuple):
    """What the clock said."""

    samples_ns: list[float]
    """Nanoseconds per call."""
    number: int
    """Calls in a reading."""
    spent_ns: float
    """In all that was timed."""


def clock_cost_ns() -> float:
    """Return what one reading of the clock costs: the least of several rounds."""
    clock = time.perf_counter_ns

    def round_ns() -> float:
        begin = clock()
        for _ in range(100):
            clock()
        return (clock() - begin) / 100

    return min(round_ns() for _ in range(5))


def group(calls: Calls, effort_s: float = EXECUTE_S) -> Grouping:
    """Decide how many calls make a reading and a block, from a few calls that are not kept."""
    call, ready = calls.call, calls.ready
    clock = time.perf_counter_ns
    spent: list[int] = []
    while len(spent) < 5 and sum(spent) < effort_s * 1e9 / 4:
        arguments = next(calls.supply)
        begin = clock()
        ready(call(*arguments))
        spent.append(clock() - begin)
    clock_ns = clock_cost_ns()
    once_ns = max(1, min(spent) - clock_ns)
    number = max(1, math.ceil(clock_ns / CLOCK_SHARE / once_ns))
    readings = max(1, round(effort_s * 1e9 / BLOCKS / (once_ns * number)))
    if calls.donated_bytes is not None:
        most = max(1, DONATED_BYTES // max(1, calls.donated_bytes))
        number = min(number, most)
        readings = min(readings, max(1, most // number))
    slow = once_ns > effort_s * 1e9
    return Grouping(1 if slow else BLOCKS, readings, number, 1 if slow else DISPATCHES)


def time_returns(calls: Calls, plan: Grouping) -> Timed:
    """Time `plan.dispatches` calls, one by one, until they return."""
    call, ready = calls.call, calls.ready
    clock = time.perf_counter_ns
    samples: list[float] = []
    for _ in range(plan.dispatches):
        arguments = next(calls.supply)
        begin = clock()
        result = call(*arguments)
        end = clock()
        ready(result)
        samples.append(end - begin)
    return Timed(samples, 1, sum(samples))


def time_blocks(calls: Calls, plan: Grouping) -> Timed:
    """Time blocks of readings of calls until they have finished: the least reading of each."""
    call, ready = calls.call, calls.ready
    donating = calls.donated_bytes is not None
    clock = time.perf_counter_ns
    samples: list[float] = []
    spent_ns = 0.0
    for _ in range(plan.blocks):
        # Buffers that are donated are made outside the clock, a block's at a time.
        count = plan.readings * plan.number if donating else 1
        batch = [next(calls.supply) for _ in range(count)]
        everyone = iter(batch) if donating else itertools.repeat(batch[0])
        taken = []
        for _ in range(plan.readings):
            turn = itertools.islice(everyone, plan.number)
            begin = clock()
            for arguments in turn:
                ready(call(*arguments))
            end = clock()
            taken.append(end - begin)
        samples.append(min(taken) / plan.number)
        spent_ns += sum(taken)
    return Timed(samples, plan.number, spent_ns)
