"""The sides there are, each a class and a line here; and who compares what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.baselines.cupy_eager import CupyEager
from harness.baselines.cupy_fused import CupyFused
from harness.baselines.cupy_graph import CupyGraph
from harness.baselines.numpy_side import FusedSide, NumpySide
from harness.baselines.side import Side
from harness.baselines.xla_side import XlaSide
from harness.errors import find_name
from harness.targets.target import Target
from harness.workload.workload import Case, Workload

SIDES: dict[str, type[Side]] = {
    side.name: side
    for side in (
        XlaSide,
        NumpySide,
        FusedSide,
        CupyEager,
        CupyFused,
        CupyGraph,
    )
}
"""By name, in the order of tables and of processes."""

THREADS = {
    "one": "pinned to one core, every library told to use one thread",
    "all": "all cores that the process may use",
}
"""How many threads of the CPU a comparison may use; on other targets it is always `all`."""

REFERENCE = XlaSide.name
"""The side that the others are held against."""


def of_family(family: str) -> list[type[Side]]:
    """Return the sides of a family of targets: `cpu`, `gpu` or `tpu`, which has none."""
    return [side for side in SIDES.values() if family in side.families]


def find(name: str) -> type[Side]:
    """Return the side of that name.

    Raises:
        UsageError: there is none; those that there are are named.
    """
    return SIDES[find_name(name, SIDES, "side")]


class Configuration(NamedTuple):
    """One side of a comparison: processes that are alike in all but the cases they measure."""

    backend: str
    threads: str
    scenario: str
    """Of the persistent cache for XLA, of the kernel cache for CuPy."""
    precision: str
    """The one precision of the process, where the environment decides on it."""


def arms(workload: type[Workload], target: Target) -> Iterator[Configuration]:
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
                    yield Configuration(side.name, threads, scenario, precision)


def compared(case: Case, arm: Configuration) -> bool:
    """Tell whether an arm measures a case."""
    if case.transform != "forward":
        return False
    return not SIDES[arm.backend].one_precision or case.precision == arm.precision
