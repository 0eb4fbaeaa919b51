"""How often: efforts, the order of visits, blocks of calls, and when to stop."""

from __future__ import annotations

import itertools
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError

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

NARROW = 0.05
"""`thorough` stops when half of the interval of the median is at most this part of the median."""


@dataclass(frozen=True)
class Effort:
    """How many processes measure a case, and how many passes each makes."""

    name: str
    processes: int
    passes: int
    limit: int
    """Processes at the most: more than `processes` where the effort adapts."""

    @property
    def protocol(self) -> str:
        """What one process does; processes of one protocol may be pooled."""
        return f"{self.passes} passes x least calls of {BLOCKS} blocks"

    @property
    def adaptive(self) -> bool:
        """Whether processes are added until the interval of the median is narrow enough."""
        return self.limit > self.processes


EFFORTS = {
    "quick": Effort("quick", 1, 1, 1),
    "default": Effort("default", 8, 3, 8),
    "thorough": Effort("thorough", 8, 3, 32),
}


def effort(text: str) -> Effort:
    """Return the effort called `text`: a name, or `PROCESSESxPASSES` such as `6x1`."""
    if text in EFFORTS:
        return EFFORTS[text]
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", text)
    if not match:
        raise UsageError(
            f"No effort is called {text!r}; known are {', '.join(EFFORTS)}, or PROCESSESxPASSES "
            "such as 6x1."
        )
    processes = int(match[1])
    return Effort(text, processes, int(match[2]), processes)


def visits(cases: Sequence[int], passes: int, seed: int) -> list[tuple[int, int]]:
    """Return (pass, case) in the order of measuring: all cases once per pass, shuffled anew."""
    rng = random.Random(seed)
    order = []
    for number in range(passes):
        once = list(cases)
        rng.shuffle(once)
        order += [(number, case) for case in once]
    return order


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
class Timed:
    """What the clock said, in nanoseconds per call."""

    dispatched: list[float]
    """Of each of `Grouping.dispatches` calls, until it returned."""
    finished: list[float]
    """Of each of `Grouping.blocks` blocks the least reading, until the calls had finished."""
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


def plan_blocks(
    call: Callable[..., Any],
    supply: Iterator[tuple[Any, ...]],
    donating: bool,
    effort_s: float = EXECUTE_S,
) -> Grouping:
    """Decide how many calls make a reading and a block, from a few calls that are not kept."""
    import jax

    ready: Callable[[Any], Any] = jax.block_until_ready
    clock = time.perf_counter_ns
    spent: list[int] = []
    while len(spent) < 5 and sum(spent) < effort_s * 1e9 / 4:
        arguments = next(supply)
        begin = clock()
        ready(call(*arguments))
        spent.append(clock() - begin)
    clock_ns = clock_cost_ns()
    once_ns = max(1, min(spent) - clock_ns)
    number = max(1, math.ceil(clock_ns / CLOCK_SHARE / once_ns))
    readings = max(1, round(effort_s * 1e9 / BLOCKS / (once_ns * number)))
    if donating:
        nbytes = sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(next(supply)))
        most = max(1, DONATED_BYTES // max(1, nbytes))
        number = min(number, most)
        readings = min(readings, max(1, most // number))
    slow = once_ns > effort_s * 1e9
    return Grouping(1 if slow else BLOCKS, readings, number, 1 if slow else DISPATCHES)


def time_blocks(
    call: Callable[..., Any], supply: Iterator[tuple[Any, ...]], plan: Grouping, donating: bool
) -> Timed:
    """Time calls until they return, then blocks of readings of calls until they have finished."""
    import jax

    ready: Callable[[Any], Any] = jax.block_until_ready
    clock = time.perf_counter_ns
    dispatched: list[float] = []
    for _ in range(plan.dispatches):
        arguments = next(supply)
        begin = clock()
        result = call(*arguments)
        end = clock()
        ready(result)
        dispatched.append(end - begin)

    finished: list[float] = []
    spent_ns = sum(dispatched)
    for _ in range(plan.blocks):
        calls = plan.readings * plan.number
        # Buffers that are donated are made outside the clock, a block's at a time.
        batch = [next(supply) for _ in range(calls if donating else 1)]
        everyone = iter(batch) if donating else itertools.repeat(batch[0])
        taken = []
        for _ in range(plan.readings):
            turn = itertools.islice(everyone, plan.number)
            begin = clock()
            for arguments in turn:
                ready(call(*arguments))
            end = clock()
            taken.append(end - begin)
        finished.append(min(taken) / plan.number)
        spent_ns += sum(taken)
    return Timed(dispatched, finished, spent_ns)


def median_interval_ranks(n: int, level: float = 0.95) -> tuple[int, int] | None:
    """Return the ranks (from 0) of the order statistics that enclose the median, or None.

    The interval [x(k), x(n-1-k)] covers the median with probability 1 - 2 P(B <= k), where B is
    binomial(n, 1/2); k is the largest that keeps this at `level`. Fewer than 6 values cannot
    reach 95 %. Source: David and Nagaraja, Order Statistics, 3rd edition, section 7.1.
    """
    from scipy.special import bdtr  # the binomial distribution; scipy.stats takes 3 x as long

    k = -1
    while bdtr(k + 1, n, 0.5) <= (1 - level) / 2:
        k += 1
    return (k, n - 1 - k) if k >= 0 else None


def is_narrow(values: Sequence[float], share: float = NARROW) -> bool:
    """Tell whether the median of `values` is known well enough to stop."""
    ranks = median_interval_ranks(len(values))
    if ranks is None:
        return False
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return (ordered[ranks[1]] - ordered[ranks[0]]) / 2 <= share * middle
