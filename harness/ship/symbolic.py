"""One export for many sizes: what each size still costs, beside building it from its source."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.declare import location
from harness.declare.workload import Case, Workload, name_of
from harness.errors import UsageError
from harness.records import environment
from harness.ship import cases as subjects
from harness.ship import children

if TYPE_CHECKING:
    import pandas as pd

CHILD = "harness.ship.symbolic_child"


class Size(msgspec.Struct, frozen=True):
    """What one size took in one process, by stage."""

    size: int
    direct: dict[str, float]
    """From the source: a program for this size alone."""
    shipped: dict[str, float]
    """From the one export, called with this size."""
    refused: str = ""


class Report(msgspec.Struct, frozen=True):
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
        return any(all(size.refused for size in same) for same in zip(*self.sizes, strict=True))


class _Answer(msgspec.Struct):
    reason: str = ""
    shapes: list[str] = []
    export_s: float = 0.0
    bytes: int | None = None
    bytes_reason: str = ""
    rows: list[Size] = []


def cases_along(workload: type[Workload], cases: Sequence[Case], axis: str) -> list[Case]:
    """Return the cases that differ from the first one in `axis` alone.

    Raises:
        UsageError: the axis is not one of sizes, or has fewer than two of them.
    """
    known = ", ".join(workload.sweep) or "none"
    if axis not in workload.sweep:
        raise UsageError(f"{name_of(workload)} has no axis {axis!r}; it has {known}.")
    if axis in workload.static:
        raise UsageError(
            f"{axis!r} is a static argument of {name_of(workload)}: every value is another "
            "program. Name an axis that only changes the shapes of the inputs."
        )
    rest = {**cases[0].coordinates, axis: None}
    chosen = [case for case in cases if {**case.coordinates, axis: None} == rest]
    sizes = [case.axes[axis] for case in chosen]
    if any(type(size) is not int or size < 1 for size in sizes) or len(set(sizes)) < 2:
        raise UsageError(
            f"axis {axis!r} of {name_of(workload)} has the values {sizes}; expected at least two "
            "different sizes of 1 or more."
        )
    return chosen


def compare(
    workload: type[Workload],
    cases: Sequence[Case],
    axis: str,
    processes: int = 5,
    seed: int | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> Report:
    """Export a workload once for all sizes of `axis`, and build every size from that export.

    Raises:
        UsageError: see :func:`cases_along`; or the number of processes makes no sense.
        ChildError: a process did not end well.
    """
    subjects.check_processes(processes)
    chosen = cases_along(workload, cases, axis)
    order = random.Random(seed)
    job = {
        "source": msgspec.to_builtins(location.locate(workload)),
        "cases": [subjects.position_of(workload, case) for case in chosen],
        "sizes": [case.axes[axis] for case in chosen],
    }
    variables = children.environment(workload, chosen[0], None)
    answers: list[_Answer] = []
    with tempfile.TemporaryDirectory(prefix="harness-ship-") as name:
        for number in range(processes):
            announce(f"process {number + 1} of {processes}: one export for every {axis}")
            job["seed"] = order.randrange(2**31)
            timeout_s = workload.timeout_s * len(chosen)
            found = children.ask(CHILD, job, Path(name), variables, timeout_s)
            answers.append(msgspec.convert(found, _Answer))
            if answers[-1].reason:
                break
    first = answers[0]
    return Report(
        workload=name_of(workload),
        axis=axis,
        processes=processes,
        versions=environment.versions(),
        shapes=first.shapes,
        export_s=[answer.export_s for answer in answers],
        bytes=first.bytes,
        bytes_reason=first.bytes_reason,
        sizes=[answer.rows for answer in answers],
        reason=next((answer.reason for answer in answers if answer.reason), ""),
    )


def frame(report: Report) -> pd.DataFrame:
    """Return a row per size: medians over the proven processes, in seconds."""
    import pandas as pd

    rows = []
    for found in zip(*report.sizes, strict=True):
        proven = [size for size in found if not size.refused]
        row: dict[str, object] = {"workload": report.workload, "axis": report.axis}
        row["size"] = found[0].size
        for way in ("direct", "shipped"):
            for stage in ("trace", "lower", "compile"):
                values = [getattr(size, way)[stage] for size in proven]
                row[f"{way}_{stage}_s"] = statistics.median(values) if values else float("nan")
        row["status"] = "ok" if proven else "refused"
        row["reason"] = "; ".join(sorted({size.refused for size in found if size.refused}))
        rows.append(row)
    return pd.DataFrame(rows)
