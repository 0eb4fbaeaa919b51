"""One export for many sizes: what each size still costs, beside building it from its source."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.declare.axes import coupled
from harness.declare.workload import Case, Workload, name_of
from harness.engine.child import ask
from harness.errors import UsageError
from harness.records import environment
from harness.ship import cases


class Size(msgspec.Struct, frozen=True):
    """What one size took in one process, in seconds by stage."""

    size: int
    direct: dict[str, float]
    """From the source: a program for this size alone."""
    shipped: dict[str, float]
    """From the one export, called with this size."""
    refused: str = ""


class SymbolicReport(msgspec.Struct, frozen=True):
    """One export for all sizes of an axis."""

    workload: str
    axis: str
    processes: int
    versions: dict[str, str]
    shapes: list[str] = []
    export_s: list[float] = []
    """Tracing and lowering with the symbol: one value per process, paid by the build machine."""
    bytes: int | None = None
    bytes_reason: str = ""
    sizes: list[list[Size]] = []
    """One list per process."""
    reason: str = ""
    """Why the function cannot be exported for all sizes at once."""

    @property
    def refused(self) -> bool:
        """Whether there is a size that no process proved."""
        return not all(row.direct for row in medians(self))


def cases_along(workload: type[Workload], known: Sequence[Case], axis: str) -> list[Case]:
    """Return the cases that differ from the first one in `axis` alone."""
    if axis not in workload.sweep:
        axes = ", ".join(workload.sweep) or "none"
        raise UsageError(f"{name_of(workload)} has no axis {axis!r}; it has {axes}.")
    names = {axis, *coupled(workload.sweep[axis])}
    if not names.isdisjoint(workload.static):
        raise UsageError(
            f"{axis!r} is or couples a static argument of {name_of(workload)}: every value is "
            "another program. Name an axis that only changes the shapes of the inputs."
        )
    rest = {**known[0].coordinates, axis: None}
    chosen = [case for case in known if {**case.coordinates, axis: None} == rest]
    sizes = [case.axes[axis] for case in chosen]
    if any(type(size) is not int or size < 1 for size in sizes) or len(set(sizes)) < 2:
        raise UsageError(
            f"axis {axis!r} of {name_of(workload)} has the values {sizes}; expected at least two "
            "different sizes of 1 or more."
        )
    return chosen


def compare(
    workload: type[Workload],
    known: Sequence[Case],
    axis: str,
    processes: int = 5,
    seed: int | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> SymbolicReport:
    """Export a workload once for all sizes of `axis`, and build every size from that export."""
    chosen = cases_along(workload, known, axis)
    order = random.Random(seed)
    job = {**cases.job(workload, chosen), "sizes": [case.axes[axis] for case in chosen]}
    variables = cases.variables(workload, chosen[0], None)
    answers: list[dict[str, Any]] = []
    while len(answers) < processes and not any("reason" in answer for answer in answers):
        announce(f"process {len(answers) + 1} of {processes}: one export for every {axis}")
        job["seed"] = order.randrange(2**31)
        answers.append(
            ask("harness.ship.symbolic_child", job, variables, workload.timeout_s * len(chosen))
        )
    first = answers[0]
    return SymbolicReport(
        workload=name_of(workload),
        axis=axis,
        processes=processes,
        versions=environment.versions(),
        shapes=first.get("shapes", []),
        export_s=[answer.get("export_s", 0.0) for answer in answers],
        bytes=first.get("bytes"),
        bytes_reason=first.get("bytes_reason", ""),
        sizes=[msgspec.convert(answer.get("rows", []), list[Size]) for answer in answers],
        reason=answers[-1].get("reason", ""),
    )


def medians(report: SymbolicReport) -> list[Size]:
    """Return a row per size: medians over the processes that proved it; no seconds if none did."""
    rows = []
    for same in zip(*report.sizes, strict=True):
        proven = [one for one in same if not one.refused]
        refused = sorted({one.refused for one in same if one.refused})
        direct = _median([one.direct for one in proven])
        shipped = _median([one.shipped for one in proven])
        rows.append(Size(same[0].size, direct, shipped, "; ".join(refused)))
    return rows


def _median(processes: list[dict[str, float]]) -> dict[str, float]:
    stages = processes[0] if processes else {}
    return {stage: statistics.median(one[stage] for one in processes) for stage in stages}
