"""What was built, in long frames: the facts of programs, and the inside of compiles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from harness.frame.frame import long_frame
from harness.frame.load import latest_records
from harness.program.facts import Facts
from harness.records.schema import FIRST_CALL, plain_axes

_CASE = (
    "machine", "commit", "env", "jax", "workload", "version",
    "target", "transform", "precision", "scenario",
)  # fmt: skip
COLUMNS = (*_CASE, "threads", "fact", "kind", "value")
"""Columns that every frame of facts has; one per axis stands behind `version`."""

_NUMBERS = ("wall_s", "threads_s", "count")


def program_facts(path: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """Return what was built, a row per case and fact, in the order in which cases were recorded.

    Args:
        path: a results tree, one machine's folder in it, or one file of records.

    Returns:
        Columns `machine`, `commit`, `env`, `jax`, `workload`, `version`, one per axis, `target`,
        `transform`, `precision`, `scenario` (`off` and `cold` build a program), `threads` (empty
        but in comparisons), then `fact`, a field of :class:`harness.program.facts.Facts`; `kind`,
        what is counted where a fact has kinds (`fusion_kinds`: `loop`, ...) and the number of the
        loop in `loop_trips`, else empty; and `value`, float64, NaN where processes disagree or XLA
        does not know the trips of a loop. Facts that nobody knows have no row.

    Raises:
        UsageError: there is no such path.
    """
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for records in latest_records(Path(path)).values():
        counted = [
            one for one in records.values() if one.facts and not one.protocol.startswith(FIRST_CALL)
        ]
        if not counted:
            continue
        one = counted[0]
        axes = plain_axes(one.axes)
        case = {name: getattr(one, name) for name in _CASE}
        case["threads"] = one.comparison.threads if one.comparison else ""
        for (fact, kind), value in _agreed([record.facts for record in counted if record.facts]):
            rows.append(({**case, "fact": fact, "kind": kind, "value": value}, axes))
    return long_frame(rows, COLUMNS, ("value",))


def _agreed(facts: list[Facts]) -> Iterator[tuple[tuple[str, str], float | None]]:
    """Yield each fact and the value that all processes found, None where they differ."""
    counted = [_counts(one) for one in facts]
    for name in dict.fromkeys(name for counts in counted for name in counts):
        # A process that does not know a total contradicts nobody; a kind it lacks, it counted 0 of.
        lacking = None if name[1] == "" else 0
        values = {counts.get(name, lacking) for counts in counted}
        if name[1] == "":
            values -= {None}
        yield name, values.pop() if len(values) == 1 else None


def _counts(facts: Facts) -> Mapping[tuple[str, str], float | None]:
    counts: dict[tuple[str, str], float | None] = {}
    for fact, value in msgspec.structs.asdict(facts).items():
        if isinstance(value, dict):
            counts |= {(fact, kind): count for kind, count in value.items()}
        elif isinstance(value, list):
            counts |= {(fact, str(loop)): trips for loop, trips in enumerate(value)}
        elif value is not None:
            counts[fact, ""] = value
    return counts


def compile_times(path: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """Return what compiles consisted of, as `harness run --inside` found out.

    Args:
        path: a results tree, one machine's folder in it, or one file of records.

    Returns:
        Columns `machine`, `commit`, `env`, `jax`, `workload`, `version`, one per axis, `target`,
        `transform`, `precision`, `scenario`; `group` and `part` of what XLA did, as `harness
        compile` has them; `pass`, "" in the rows of groups, which sum to the whole; `wall_s`,
        seconds of the compile's wall time, and `threads_s`, seconds of all threads, of a pass
        without what is inside of it; `count`, how often the pass ran, 0 for a group. Of passes
        those of the most `threads_s` are there, 30 at the most. float64, of one compile, which was
        traced and is none of those that were timed.

    Raises:
        UsageError: there is no such path.
    """
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for records in latest_records(Path(path)).values():
        for record in records.values():
            times, axes = record.compile_times, plain_axes(record.axes)
            case = {name: getattr(record, name) for name in _CASE}
            for one in (*times.groups, *times.passes) if times else ():
                numbers = msgspec.structs.asdict(one)
                rows.append(({**case, **numbers, "pass": numbers.pop("name")}, axes))
    return long_frame(rows, (*_CASE, "group", "part", "pass", *_NUMBERS), _NUMBERS)
