"""What a case's visit needs of XLA, CUPTI and the counting of operations, outside the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import jax

from harness.declare.workload import Case, Workload, static_arguments
from harness.program import reading
from harness.program.facts import Facts
from harness.program.text import fingerprint
from harness.sides import attribution, counting
from harness.sides.side import Side
from harness.stages import cold_pass as stages
from harness.watch import evidence

if TYPE_CHECKING:
    from harness.sides.xla_side import XlaSide

WARM_S = 0.1
"""Calls before the clock starts take this long at most, and are one at least. On a device every set
of inputs is called with: a CUDA graph is captured for each."""

T = TypeVar("T")


def ahead_of_time(side: Side) -> XlaSide | None:
    """Return the side if it is built ahead of time, stage by stage."""
    from harness.sides.xla_side import XlaSide

    return side if isinstance(side, XlaSide) else None


def read_program(taken: stages.Pass) -> tuple[Facts, str, str]:
    """Return the facts, the fingerprint and the text of what was built."""
    facts = reading.read(taken.traced, taken.lowered, taken.compiled)
    return facts, fingerprint(taken.compiled), taken.compiled.as_text() or ""


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


def watched(side: Side, measure: Callable[[], T], guarded: bool) -> tuple[T, list[str]]:
    """Return what `measure` returns, and what JAX built meanwhile, which nothing should be."""
    xla = ahead_of_time(side)
    if xla is not None:
        xla.proof.take()
    with side.timed() if guarded else nullcontext():
        result = measure()
    problem = evidence.contradiction(xla.proof.take(), {}) if xla is not None else None
    return result, [f"compilation inside the timed region: {problem}"] if problem else []


def operations(workload: type[Workload], case: Case, data: Any) -> tuple[int | None, int | None]:
    """Return the baseline's array operations and the bytes they move; None where not countable."""
    try:
        return counting.count(workload, case, data, static_arguments(workload, case))
    except Exception:  # a baseline may use what a counting array does not have
        return None, None


def device_time(call: Callable[[], Any]) -> tuple[int | None, float | None]:
    """Return the kernels of one call, and the time inside them in nanoseconds, where it is told."""
    found = attribution.attribute(call)
    return (None, None) if isinstance(found, str) else (found.launches, found.device_ns)
