"""`in_flight`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness.stages.blocks import EXECUTE_S, Calls, Grouping, Timed, block
from harness.stages.stage import LOOP, Stage, median

if TYPE_CHECKING:
    from harness.stages.passes import Pass

LEAST, MOST = 4, 1_000
"""Calls in flight that make a sample."""

HELD_BYTES = 256 * 2**20
"""Results of calls in flight, and buffers that they donate, take at most this much."""

SLOW = f"a call takes more than {EXECUTE_S * 1e3:g} ms"
LARGE = f"what {LEAST} calls return or donate takes more than {HELD_BYTES // 2**20} MiB"
INLINE = "the result is there when the call returns: none are in flight"


def take(run: Pass) -> None:
    """Time blocks of calls that are waited for together."""
    run.repeated("in_flight", time_flights, STAGE.events)


def time_flights(calls: Calls, plan: Grouping) -> Timed:
    """Time calls made one after the other, then one wait for all their results.

    Each has its arguments ready, donated buffers of its own included. Results are kept until all
    are there, since independent calls may overlap, and the last need not be the last to finish.
    """
    call, clock = calls.call, time.perf_counter_ns
    if not plan.fitting:
        return Timed([], 0, missing=SLOW)
    held = calls.result_bytes + (calls.donated_bytes or 0)
    at_once = HELD_BYTES // max(1, held)
    if at_once < LEAST:
        return Timed([], 0, missing=LARGE)
    number = max(LEAST, min(plan.fitting, at_once, MOST))
    samples, inline = [], True
    for _ in range(plan.blocks if plan.fitting >= LEAST else 1):
        arguments = block(calls, number)
        begin = clock()
        results = [call(*one) for one in arguments]
        returned = calls.is_there(results[-1])
        calls.ready(results)
        samples.append((clock() - begin) / number)
        inline = inline and returned
    return Timed(samples, sum(samples) * number, (), number, INLINE if inline else "")


STAGE = Stage(
    name="in_flight",
    title="A call among many that are waited for together.",
    order=105,
    step="run",
    statistic=median,
    calibrated_by=LOOP,
    effect=0.25,
    colour="#6B4C9A",
    take=take,
    runs_program=True,
)
