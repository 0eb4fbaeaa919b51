"""Which sides a workload's comparison has on a target, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.declare.workload import Case, Workload
from harness.sides.registry import SIDES, of_family
from harness.sides.threads import THREADS
from harness.targets import Target


class Arm(NamedTuple):
    """One side of a comparison: processes that are alike in all but the cases they measure."""

    backend: str
    threads: str
    scenario: str
    """Of the persistent cache for XLA, of the kernel cache for CuPy."""
    precision: str
    """The one precision of the process, where the environment decides on it."""


def arms(workload: type[Workload], target: Target) -> Iterator[Arm]:
    """Yield the sides to measure on `target`; none where there is nothing to compare or run.

    Those that are held against each other follow each other, so that a drift of the machine hits
    them alike.
    """
    if workload.baseline is None or target.compile_only:
        return
    for threads in THREADS if target.family == "cpu" else ("all",):
        for side in of_family(target.family):
            if not side.measures(workload):
                continue
            for precision in (side.one_precision and workload.precisions) or ("",):
                for scenario in side.scenarios:
                    yield Arm(side.name, threads, scenario, precision)


def compared(case: Case, arm: Arm) -> bool:
    """Tell whether an arm measures a case."""
    if case.transform != "forward":
        return False
    return not SIDES[arm.backend].one_precision or case.precision == arm.precision
