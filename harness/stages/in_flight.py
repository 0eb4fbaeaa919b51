"""`in_flight`."""

from __future__ import annotations

import time

from harness.stages.blocks import Calls, Grouping, Timed, block
from harness.stages.stage import Stage

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
    return Timed(samples, sum(samples) * number, (), number, INLINE if inline else "")


STAGE = Stage(
    name="in_flight",
    method=2,
    title="A call among many that are not waited for, but for the last.",
    step="run",
    effect=0.25,
    colour="#6B4C9A",
    take=lambda run: run.repeated("in_flight", time_flights),
)
