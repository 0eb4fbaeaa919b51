"""How a frame stands in Parquet: the columns, their types, and what a file says of itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from harness.frame import axes_text
from harness.frame.frame import (
    COLUMNS,
    COUNT,
    MOMENT,
    NUMBER,
    TEXT,
    axis_column,
    axis_columns,
)
from harness.frame.where import LISTS

VERSION = 1
"""Version of this layout; a reader refuses files of any other."""

MARK = b"harness_frame"
"""The key of a file's metadata under which the version stands."""

AXES = "axes"
"""The column that holds the axes of each row as JSON."""

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
# Long texts that few rows differ in. The other columns of text stay plain: they are small, and
# pyarrow 26 does not use the statistics of dictionary columns to leave out row groups.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(LISTS, pa.list_(pa.float64())),
    **dict.fromkeys(("environment", "reason", "labels"), _DICTIONARY),
}
_KINDS = {
    TEXT: pa.string(),
    MOMENT: pa.timestamp("ms", "UTC"),
    NUMBER: pa.float64(),
    COUNT: pa.int64(),
}

SCHEMA = pa.schema(
    [
        *((name, _TYPES.get(name) or _KINDS[kind]) for name, kind in COLUMNS.items()),
        (AXES, _DICTIONARY),
    ],
    metadata={MARK: str(VERSION).encode()},
)
"""Columns of every file: those of :data:`harness.frame.frame.COLUMNS`, and the axes as JSON."""


def to_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame in :data:`SCHEMA`; NaN is null but for those in lists."""
    arrays = [_array(frame[name], SCHEMA.field(name).type) for name in COLUMNS]
    texts = pa.array(_axes_texts(frame), pa.string()).dictionary_encode()
    return pa.Table.from_arrays([*arrays, texts.cast(_DICTIONARY)], schema=SCHEMA)


def with_axis_columns(table: pa.Table, frame: pd.DataFrame) -> pa.Table:
    """Return `table` with a column per axis as well, for other programs.

    An axis whose values are of several types becomes text there; :data:`AXES` keeps the types.
    """
    for name in axis_columns(frame):
        column = axis_column(name, SCHEMA.names)
        table = table.append_column(column, _one_type(frame[name]))
    order = [name for name in table.column_names if name != AXES]
    return table.select([*order, AXES])


def _one_type(column: pd.Series[Any]) -> pa.Array:
    values = column.astype(object)
    missing = values.map(axes_text.is_missing) | values.isna()
    kinds = {type(value) for value in values[~missing]}
    if not kinds <= {bool} and not kinds <= {int} and not kinds <= {float}:
        values = values.map(str)
    try:
        return pa.array(values.to_numpy(), mask=missing.to_numpy(bool))
    except (pa.ArrowInvalid, OverflowError):  # integers beyond 64 bits
        return pa.array(values.map(str).to_numpy(), mask=missing.to_numpy(bool))


def _array(column: pd.Series[Any], kind: Any) -> pa.Array:
    if kind == _DICTIONARY:
        return pa.array(column, pa.string(), from_pandas=True).dictionary_encode().cast(kind)
    if not pa.types.is_list(kind):
        return pa.array(column, kind, from_pandas=True)
    lists = column.tolist()
    ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    values = np.fromiter(itertools.chain.from_iterable(lists), np.float64, int(ends[-1]))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values))


def _axes_texts(frame: pd.DataFrame) -> Iterator[str]:
    names = axis_columns(frame)
    columns = [frame[name].to_numpy(object) for name in names]
    # Rows of a case share their values: most rows cost a look at where these stand in memory. The
    # columns above keep them alive, so that no address is used twice.
    known: dict[tuple[int, ...], str] = {}
    for values in zip(*columns, strict=True) if names else ((),) * len(frame):
        addresses = tuple(map(id, values))
        text = known.get(addresses)
        if text is None:
            text = known[addresses] = axes_text.encode(dict(zip(names, values, strict=True)))
        yield text
