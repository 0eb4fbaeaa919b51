"""Calls of a finished program on the clock, one by one and in blocks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

EXECUTE_S = 0.020
"""How long one process runs a program, in seconds, over all of its passes: the least of as many
calls is then the same at each effort. A longer call still runs once in each pass."""

BLOCKS = 4
"""Blocks of calls that one pass takes of `execute`; each block gives its least call."""

DISPATCHES = 8
"""Calls that one pass times of `dispatch`, at the least."""

MOST_RETURNS = 1_000
"""Calls that one pass times for the distribution of `dispatch`, at the most."""

DONATED_BYTES = 64 * 2**20
"""Fresh buffers made ahead for a block of donating calls take at most this much."""

LEAST, MOST = 8, 1_000
"""Calls in flight that make a sample."""

FLYING_BYTES = 256 * 2**20
"""Results of calls in flight, and buffers that they donate, take at most this much."""

SLOW_MS = 5
"""A longer call is not put into flight: what is gained by not waiting is no part of it."""

SLOW = f"a call takes more than {SLOW_MS} ms"
TOGETHER = "on several devices of a CPU, many calls in flight may wait for each other for ever"
LARGE = f"what {LEAST} calls return or donate takes more than {FLYING_BYTES // 2**20} MiB"
INLINE = "results are there when a call returns: none are in flight, and nothing is gained"


@dataclass(frozen=True)
class Grouping:
    """How a program's calls are grouped for the clock."""

    blocks: int
    readings: int
    """Calls in a block, each timed by itself."""
    returns: int
    """Calls that are timed until they return."""
    once_ns: float
    """About what a call takes."""


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
    result_bytes: int = 0
    """What a call returns."""
    is_there: Callable[[Any], bool] = bool
    """Whether a result is there, without waiting for it."""
    cpu_devices: int = 1
    """Of a CPU, that a call runs on together."""


class Timed(NamedTuple):
    """What the clock said."""

    samples_ns: Sequence[float]
    """Nanoseconds per call: what the value of a process is made of."""
    calls_ns: Sequence[float] = ()
    """Each call that was timed by itself."""
    number: int = 1
    """Calls averaged in a sample."""
    reason: str = ""
    """Why there is no sample, where that is no fault, or what else must be known of it."""
    cpu_ns: Sequence[float] = ()
    """CPU time of the process per call, a mean for each sample."""


def group(calls: Calls, effort_s: float = EXECUTE_S) -> Grouping:
    """Decide how many calls make a block, from a few calls that are not kept."""
    call, ready = calls.call, calls.ready
    clock = time.perf_counter_ns
    spent: list[int] = []
    # One call alone may have been held up.
    while len(spent) < 5 and sum(spent) < effort_s * 1e9 / (4 if len(spent) > 1 else 1):
        arguments = next(calls.supply)
        begin = clock()
        ready(call(*arguments))
        spent.append(clock() - begin)
    once_ns = max(1, min(spent))
    if once_ns > effort_s * 1e9:
        return Grouping(1, 1, 1, once_ns)
    fitting = max(1, round(effort_s * 1e9 / BLOCKS / once_ns))
    returns = min(max(DISPATCHES, fitting), MOST_RETURNS)
    if calls.donated_bytes is not None:
        fitting = min(fitting, max(1, DONATED_BYTES // max(1, calls.donated_bytes)))
    return Grouping(BLOCKS, fitting, returns, once_ns)


def time_returns(calls: Calls, plan: Grouping) -> Timed:
    """Time calls one by one until they return, each waited for outside the clock.

    The least call of each block, as in :func:`time_blocks`.
    """
    call, ready = calls.call, calls.ready
    clock = time.perf_counter_ns
    taken: list[int] = []
    for _ in range(plan.returns):
        arguments = next(calls.supply)
        begin = clock()
        result = call(*arguments)
        end = clock()
        ready(result)
        taken.append(end - begin)
    size = -(-len(taken) // BLOCKS)
    samples = [min(taken[at : at + size]) for at in range(0, len(taken), size)]
    return Timed(samples, taken)


def time_blocks(calls: Calls, plan: Grouping) -> Timed:
    """Time blocks of calls until they have finished, each by itself: the least call of each."""
    call, ready = calls.call, calls.ready
    clock = time.perf_counter_ns
    samples: list[int] = []
    everyone: list[int] = []
    cpu_ns: list[float] = []
    for _ in range(plan.blocks):
        taken = []
        made = block(calls, plan.readings)
        cpu_begin = time.process_time_ns()
        for arguments in made:
            begin = clock()
            ready(call(*arguments))
            end = clock()
            taken.append(end - begin)
        cpu_ns.append(round((time.process_time_ns() - cpu_begin) / len(taken), 1))
        samples.append(min(taken))
        everyone += taken
    return Timed(samples, everyone, cpu_ns=cpu_ns)


def block(calls: Calls, number: int) -> Iterable[tuple[Any, ...]]:
    """Return the arguments of `number` calls; buffers that are donated are made ahead."""
    if calls.donated_bytes is None:
        return itertools.repeat(next(calls.supply), number)
    return [next(calls.supply) for _ in range(number)]


def time_flights(calls: Calls, plan: Grouping) -> Timed:
    """Time calls made one after the other, then one wait for the last result.

    Results before it are let go as they come, as in a program: to keep them would time the
    operating system, which hands out fresh memory for each. Donated buffers are made ahead.
    """
    call, clock = calls.call, time.perf_counter_ns
    if calls.cpu_devices > 1:
        return Timed([], reason=TOGETHER)
    if plan.once_ns > SLOW_MS * 1e6:
        return Timed([], reason=SLOW)
    at_once = FLYING_BYTES // max(1, calls.result_bytes + (calls.donated_bytes or 0))
    if at_once < LEAST:
        return Timed([], reason=LARGE)
    number = max(LEAST, min(plan.readings, at_once, MOST))
    samples, inline = [], True
    for _ in range(plan.blocks if plan.readings >= LEAST else 1):
        arguments = block(calls, number)
        begin = clock()
        for one in arguments:
            result = call(*one)
        returned = calls.is_there(result)
        calls.ready(result)
        samples.append((clock() - begin) / number)
        inline = inline and returned
    return Timed(samples, (), number, INLINE if inline else "")
