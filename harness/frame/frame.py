"""The frame that analysis works on: its columns, their order, and how one is put together."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.frame import axes_text
from harness.program.facts import TOTALS
from harness.stages.registry import STAGES

TEXT = "text"
MOMENT = "moment"
NUMBER = "number"
COUNT = "count"
OBJECT = "object"

COLUMNS = {
    "machine": TEXT,
    "commit": TEXT,
    "commit_date": MOMENT,
    "started_at": MOMENT,
    "env": TEXT,
    "python": TEXT,
    "jax": TEXT,
    "jaxlib": TEXT,
    "workload": TEXT,
    "version": TEXT,
    "target": TEXT,
    "transform": TEXT,
    "scenario": TEXT,
    "stage": TEXT,
    "unit": TEXT,
    "value": NUMBER,
    "calibrated": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "least": NUMBER,
    "p10": NUMBER,
    "p50": NUMBER,
    "p90": NUMBER,
    "p50_low": NUMBER,
    "p50_high": NUMBER,
    "n_calls": NUMBER,
    "programs": NUMBER,
    "programs_s": NUMBER,
    "collected_s": NUMBER,
    "n_processes": COUNT,
    "samples": OBJECT,
    "status": TEXT,
    "reason": TEXT,
    "fingerprint": TEXT,
    "effort": TEXT,
    "protocol": TEXT,
    "dirty": TEXT,
    "night": TEXT,
    "environment": OBJECT,
    "calibrated_samples": OBJECT,
    "cpu_samples": OBJECT,
    "p90_samples": OBJECT,
    "processes": OBJECT,
    "cpu_processes": OBJECT,
    "entry_bytes": NUMBER,
    "precision": TEXT,
    "backend": TEXT,
    "threads": TEXT,
    "comparable": TEXT,
    "labels": TEXT,
    "static": TEXT,
    "n_forked": NUMBER,
    **dict.fromkeys(TOTALS, NUMBER),
    "axes": TEXT,
}
"""Columns that every frame has, in order, and what they hold; one column per axis follows."""

AXES = "axes"
"""The column with the axes of each row as JSON, and so with the names of the columns of axes."""

TEXT_LISTS = ("processes", "cpu_processes")

LISTS = ("samples", "calibrated_samples", "cpu_samples", "p90_samples", *TEXT_LISTS)
"""Columns that hold a list in each row: of floats, or of texts."""

INSTRUMENTS = frozenset({"process", "reference"})
"""Workloads that measure the process and the machine, and are no one's result."""

ORIGIN = ["machine", "commit", "dirty", "env", "effort", "night"]
"""Columns that say where rows come from; rows of one origin belong into one table."""

NO_MOMENT = np.iinfo(np.int64).min
"""Milliseconds that stand for no date: NumPy's NaT."""


@dataclass
class Rows:
    """Rows on their way into a frame, by column."""

    columns: dict[str, Sequence[Any] | np.ndarray[Any, Any]]
    """All of :data:`COLUMNS`, of equal length; moments are int64 milliseconds since 1970."""
    axes: Sequence[Mapping[str, Any]]
    """The axes of each case."""
    case: np.ndarray[Any, Any]
    """The case of each row, as a position in `axes`."""


def axis_column(axis: str, columns: Container[str] = COLUMNS) -> str:
    """Return the column of an axis; one that a foreign suite calls `version` is `axis_version`.

    `columns` are those that the frame has anyway.
    """
    return f"axis_{axis}" if axis in columns else axis


def axis_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame that hold axes.

    What :data:`AXES` names; where nothing does, whatever not all frames have.
    """
    texts = [text for text in frame[AXES].dropna().unique() if text] if AXES in frame else []
    if not texts:
        return [column for column in frame.columns if column not in COLUMNS]
    names = {name for text in texts for name in axes_text.decode(text)}
    return [column for column in frame.columns if column in names]


def with_axes(columns: Sequence[str], axes: Iterable[str]) -> list[str]:
    """Return the columns of a table of cases, with those of axes in front of `target`."""
    at = columns.index("target")
    return [*columns[:at], *axes, *columns[at:]]


def ordinary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ordinary measurements: without those of comparisons with baselines."""
    return frame[frame["threads"] == ""]


def stage_order(stage: str) -> tuple[int, str]:
    """Return what to sort stages by: as a program goes through them; other names stand behind."""
    return (STAGES[stage].order if stage in STAGES else sys.maxsize, stage)


def order_of(value: Any) -> tuple[int, Any]:
    """Return what to sort the values of an axis by: numbers, text, tuples, others."""
    if isinstance(value, int | float):
        # NaN would make the order depend on where one begins.
        return (0, value) if value == value else (3, "nan")
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, tuple):
        return (2, tuple(map(order_of, value)))
    return (3, repr(value))


def to_moment(milliseconds: object) -> int:
    """Return milliseconds since 1970 as a frame can hold them, or :data:`NO_MOMENT`."""
    limit = 8.64e15  # the last moment of JavaScript's Date, in which asv counts
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return NO_MOMENT
    if not math.isfinite(milliseconds) or abs(milliseconds) > limit:
        return NO_MOMENT
    return int(milliseconds)


def to_frame(parts: Sequence[Rows]) -> pd.DataFrame:
    """Return one frame with the rows of all parts."""
    data = {
        column: series(kind, [part.columns[column] for part in parts])
        for column, kind in COLUMNS.items()
        if column != AXES
    }
    data[AXES] = series(TEXT, [_axes_texts(part) for part in parts])
    names = dict.fromkeys(axis for part in parts for axes in part.axes for axis in axes)
    for axis in names:
        data[axis_column(axis)] = series(OBJECT, [_axis_values(part, axis) for part in parts])
    return pd.DataFrame(data)


def _axis_values(part: Rows, axis: str) -> np.ndarray[Any, Any]:
    values = objects(axes.get(axis, math.nan) for axes in part.axes)
    return values[part.case]  # type: ignore[no-any-return]


def _axes_texts(part: Rows) -> np.ndarray[Any, Any]:
    named = ({axis_column(axis): value for axis, value in axes.items()} for axes in part.axes)
    texts = objects(map(axes_text.encode, named))
    return texts[part.case]  # type: ignore[no-any-return]


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def objects(values: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return an array of Python objects; tuples and lists stay whole."""
    return np.fromiter(values, dtype=object)


def series(kind: str, pieces: Sequence[Sequence[Any] | np.ndarray[Any, Any]]) -> pd.Series[Any]:
    """Return a column that holds what `kind` says; moments come as in :class:`Rows`."""
    if kind == MOMENT:
        whole = np.concatenate([np.empty(0, np.int64), *map(np.asarray, pieces)]).astype(np.int64)
        return pd.Series(pd.DatetimeIndex(whole.view("datetime64[ms]"), tz="UTC"))
    if kind in (NUMBER, COUNT):
        dtype = np.float64 if kind == NUMBER else np.int64
        return pd.Series(np.concatenate([np.empty(0), *map(np.asarray, pieces)]).astype(dtype))
    arrays = [piece if isinstance(piece, np.ndarray) else objects(piece) for piece in pieces]
    whole = np.concatenate([np.empty(0, object), *arrays])
    return pd.Series(whole, dtype="str" if kind == TEXT else object)
