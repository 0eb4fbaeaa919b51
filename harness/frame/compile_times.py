"""The inside of compiles in one long frame: a row per case and group, and per pass."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from harness.frame.frame import long_frame
from harness.frame.load import latest_records
from harness.records.schema import plain_axes

_CASE = (
    *("machine", "commit", "env", "jax", "workload", "version"),
    *("target", "transform", "precision", "scenario"),
)
_NUMBERS = ("wall_s", "threads_s", "count")
COLUMNS = (*_CASE, "group", "part", "pass", *_NUMBERS)
"""Columns that every such frame has; one per axis stands behind `version`."""


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
            times = record.compile_times
            if times is None:
                continue
            axes = plain_axes(record.axes)
            case = {name: getattr(record, name) for name in _CASE}
            for one in (*times.groups, *times.passes):
                told = msgspec.structs.asdict(one)
                rows.append(({**case, **told, "pass": told.pop("name")}, axes))
    return long_frame(rows, COLUMNS, _NUMBERS)
