"""The frame that analysis works on: its columns, their order, and how one is put together."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.columns import (
    AXES,
    COLUMNS,
    COUNT,
    MOMENT,
    NUMBER,
    TEXT,
    decode_axes,
    encode_axes,
    objects,
)
from harness.records.schema import INSTRUMENTS as INSTRUMENTS
from harness.stages.registry import STAGES

OBJECT = "object"
"""What a column of Python's objects holds: lists, the shared text of environments, an axis."""

ORIGIN = ["machine", "commit", "dirty", "env", "effort", "night"]
"""Columns that say where rows come from; rows of one origin belong into one table."""


@dataclass
class Rows:
    """Rows on their way into a frame, by column."""

    columns: dict[str, Sequence[Any] | np.ndarray[Any, Any]]
    """All of :data:`harness.frame.columns.COLUMNS` but `axes`, of equal length; moments are int64
    milliseconds since 1970."""
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

    What the column `axes` names; where nothing does, whatever not all frames have.
    """
    texts = [text for text in frame[AXES].dropna().unique() if text] if AXES in frame else []
    if not texts:
        return [column for column in frame.columns if column not in COLUMNS]
    names = {name for text in texts for name in decode_axes(text)}
    return [column for column in frame.columns if column in names]


def with_axes(columns: Sequence[str], axes: Iterable[str]) -> list[str]:
    """Return the columns of a table of cases, with those of axes in front of `target`."""
    at = columns.index("target")
    return [*columns[:at], *axes, *columns[at:]]


def axes_of_cases(table: pd.DataFrame) -> list[str]:
    """Return the columns of axes of a table of cases, which :func:`with_axes` has put there."""
    names = list(table.columns)
    return names[names.index("version") + 1 : names.index("target")]


def long_frame(
    rows: Iterable[tuple[dict[str, Any], Mapping[str, Any]]],
    columns: Sequence[str],
    numbers: Container[str],
) -> pd.DataFrame:
    """Return a table of cases: of each row what `columns` hold, and its axes.

    Columns are text but for `numbers`; whole numbers on an axis stay whole where another workload
    lacks the axis.
    """
    axes: dict[str, None] = {}
    cells = []
    for row, own in rows:
        named = {axis_column(name, columns): value for name, value in own.items()}
        axes |= dict.fromkeys(named)
        cells.append(row | named)
    frame = pd.DataFrame(cells, columns=with_axes(columns, axes), dtype=object)
    return frame.astype({name: float if name in numbers else "str" for name in columns})


def ordinary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ordinary measurements: without those of comparisons with baselines."""
    return frame[frame["threads"] == ""]


_PLACES = {stage: place for place, stage in enumerate(STAGES)}


def stage_order(stage: str) -> tuple[int, str]:
    """Return what to sort stages by: as a program goes through them; other names stand behind."""
    return (_PLACES.get(stage, len(_PLACES)), stage)


def to_frame(parts: Sequence[Rows]) -> pd.DataFrame:
    """Return one frame with the rows of all parts."""
    data = {
        column: series(kind, [part.columns[column] for part in parts])
        for column, kind in COLUMNS.items()
        if column != AXES
    }
    texts = []
    for part in parts:
        named = ({axis_column(axis): value for axis, value in axes.items()} for axes in part.axes)
        texts.append(objects(map(encode_axes, named))[part.case])
    data[AXES] = series(TEXT, texts)
    for axis in dict.fromkeys(axis for part in parts for axes in part.axes for axis in axes):
        values = [
            objects(axes.get(axis, math.nan) for axes in part.axes)[part.case] for part in parts
        ]
        data[axis_column(axis)] = series(OBJECT, values)
    return pd.DataFrame(data)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


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
