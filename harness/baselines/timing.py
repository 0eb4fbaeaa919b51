"""Time one side of a comparison: the slope over many calls. One code path for every backend."""

from __future__ import annotations

import gc
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax

from harness.baselines.side import Side
from harness.jaxhooks import jax_names
from harness.program.collector import gc_off

BUDGET_S = 0.3
"""How long one visit times a case, in seconds; a longer call still runs four times."""

PAIRS = 100
"""Pairs of a short and a long window in one visit."""

SAMPLES = 4
"""Slopes that one visit's pairs give: each from the least of its short and of its long windows,
because what disturbs a window only makes it longer."""

RATIO = 4
"""How many times longer the long window is."""

SINGLES = 8
"""Calls that are timed one by one, for `latency` and `dispatch`."""

HOST_BOUND = 0.9
"""Where returning takes this part of a slope, the slope is the host's and not the device's."""

WARM_S = 0.1
"""Calls before the clock starts take this long at most, and are one at least. On a device every set
of inputs is called with: a CUDA graph is captured for each."""

CACHE_MULTIPLE = 4
"""A working set is beyond a cache that is this many times smaller."""

MOST_BYTES = 256 * 2**20
MOST_SETS = 16
"""Of inputs that take turns, so that none comes from a cache."""

_clock = time.perf_counter_ns


@dataclass
class Times:
    """What one visit measured, in nanoseconds per call."""

    latency: list[float] = field(default_factory=list)
    """One call, until its result is there."""
    dispatch: list[float] = field(default_factory=list)
    """One call, until it returns."""
    slope: list[float] = field(default_factory=list)
    """What one more call costs among many: constants of waiting cancel."""
    number: int = 1
    """The calls by which the windows of a pair differ."""
    backwards: int = 0
    """Samples thrown away because the long window took no longer than the short one."""
    unfinished: int = 0
    """Results that were not there after they had been waited for."""
    cpu_ns: int = 0
    """CPU time of the whole process in the timed region."""
    wall_ns: int = 0


def measure(side: Side, call: Callable[..., Any], sets: Sequence[tuple[Any, ...]]) -> Times:
    """Time calls one by one, then windows of calls in which the sets of inputs take turns.

    A call must have been made before. With T(k) the least time of several windows of k calls, a
    sample is (T(k2) - T(k1)) / (k2 - k1). Where the side is not asynchronous each call of a window
    is waited for, otherwise only the last.
    """
    times = Times()
    turns = itertools.cycle(sets)
    gc.collect()
    with gc_off():
        cpu, wall = time.process_time_ns(), _clock()
        _singles(side, call, turns, times)
        short, long, pairs = plan(min(times.latency), BUDGET_S)
        times.number = long - short
        for sample in range(min(pairs, SAMPLES)):
            low = high = float("inf")
            for _ in range(sample, pairs, SAMPLES):
                low = min(low, _window(side, call, turns, short, times))
                high = min(high, _window(side, call, turns, long, times))
            if high > low:
                times.slope.append((high - low) / (long - short))
            else:
                times.backwards += 1
        times.wall_ns = _clock() - wall
        times.cpu_ns = time.process_time_ns() - cpu
    return times


def warm(side: Side, call: Callable[..., Any], sets: Sequence[tuple[Any, ...]]) -> str:
    """Call once with each set of inputs, while there is time; return how that moved data.

    What a side forbids in the timed region is tried here, so that the timing can do without.
    """
    problem = ""
    begin = time.perf_counter()
    for arguments in sets:
        try:
            with nullcontext() if problem else side.timed():
                side.wait(call(*arguments))
        except jax.errors.JaxRuntimeError as error:
            if "Disallowed" not in str(error):
                raise
            problem = f"transfer inside the timed region: {str(error).partition(': ')[2]}"
            side.wait(call(*arguments))
        if not side.asynchronous and time.perf_counter() - begin > WARM_S:
            break
    return problem


def is_host_bound(times: Times) -> bool:
    """Tell whether the host could not ask an asynchronous side for work any faster."""
    if not times.slope:
        return False
    return min(times.dispatch) > HOST_BOUND * statistics.median(times.slope)


def plan(once_ns: float, budget_s: float) -> tuple[int, int, int]:
    """Return the calls of the short and of the long window, and how many pairs of them there are.

    `once_ns` is the time of one call.
    """
    calls = budget_s * 1e9 / max(once_ns, 1.0)
    long = max(2, round(calls / PAIRS * RATIO / (RATIO + 1)))
    short = max(1, long // RATIO)
    return short, long, max(1, min(PAIRS, round(calls / (short + long))))


def _singles(side: Side, call: Callable[..., Any], turns: Iterator[Any], times: Times) -> None:
    spent = 0
    while len(times.latency) < SINGLES and spent < BUDGET_S * 1e9 / 4:
        arguments = next(turns)
        begin = _clock()
        result = call(*arguments)
        returned = _clock()
        side.wait(result)
        end = _clock()
        times.unfinished += not side.done(result)
        times.dispatch.append(returned - begin)
        times.latency.append(end - begin)
        spent += end - begin


def _window(
    side: Side, call: Callable[..., Any], turns: Iterator[Any], count: int, times: Times
) -> int:
    wait = side.wait
    wait_each = not side.asynchronous
    result = None
    chosen = itertools.islice(turns, count)
    begin = _clock()
    for arguments in chosen:
        result = call(*arguments)
        if wait_each:
            wait(result)
    wait(result)
    end = _clock()
    times.unfinished += not side.done(result)
    return end - begin


def set_count(argument_bytes: int, cache_bytes: int | None) -> int:
    """Return how many sets of inputs there should be.

    Enough to exceed :data:`CACHE_MULTIPLE` caches, where that many can be afforded.
    """
    if not argument_bytes:
        return 1
    enough = math.ceil(CACHE_MULTIPLE * (cache_bytes or 0) / argument_bytes)
    return max(1, min(enough, MOST_SETS, MOST_BYTES // argument_bytes))


def is_resident(sets: int, argument_bytes: int, output_bytes: int, cache: int | None) -> bool:
    """Tell whether what takes turns, and one result, may stay in the cache."""
    return cache is not None and sets * argument_bytes + output_bytes < CACHE_MULTIPLE * cache


# Time inside kernels, as the device's own activity records tell it; never the headline


def attribute(call: Callable[[], Any], iterations: int = 3) -> tuple[int, float] | None:
    """Return how many kernels a call launches, and the nanoseconds in them; None if not to be had.

    Kernels that ran side by side count twice; copies and fills of memory are not seen.

    CUPTI's records are of a whole process, so the same instrument serves XLA and CuPy. It is taken
    in a pass of its own, after all timing: under a profiler XLA launches kernel by kernel what it
    would have put into a CUDA graph. The instrument is the one of JAX's Mosaic GPU, which is
    private.

    `call` has been called before: nothing must be compiled in it. The time is the least over
    `iterations` calls.
    """
    try:
        extension = jax_names.cupti()
        get_timings, synchronise = extension._cupti_get_timings, extension._sync_all_devices
        extension._cupti_init()
        try:
            results = [call() for _ in range(iterations)]
            synchronise()
            del results
        finally:
            rows = get_timings(True)
    except (ImportError, AttributeError, RuntimeError):  # no CUPTI, or another profiler uses it
        return None
    return summarise(rows, iterations)


def summarise(rows: list[tuple[str, float]], iterations: int) -> tuple[int, float] | None:
    """Return one call's share of CUPTI's rows, which are (name, milliseconds) in order.

    None where calls, which are equal, did not launch equal kernels.
    """
    count = len(rows) // iterations
    calls = [rows[at : at + count] for at in range(0, len(rows), count or 1)]
    kernels = {tuple(name for name, _ in one) for one in calls}
    if len(kernels) != 1 or len(calls) != iterations:
        return None
    return count, min(math.fsum(ms for _, ms in one) for one in calls) * 1e6
