"""The frame that analysis works on: its columns, their order, and how one is put together."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.columns import (
    AXES,
    COLUMNS,
    COUNT,
    JSON,
    MOMENT,
    NUMBER,
    TEXT,
    encode_axes,
    objects,
)
from harness.records.environment import told_apart
from harness.records.schema import INSTRUMENTS as INSTRUMENTS
from harness.stages.registry import STAGES

Array = np.ndarray[Any, Any]

FLAGS = ("xla_flags", "env_vars")
"""Columns that a record has in its environment."""

PLACE = ["env", *FLAGS]
"""Columns that tell apart environments of one machine and commit."""

ORIGIN = ["machine", "commit", "dirty", *PLACE, "effort", "night"]
"""Columns that say where rows come from; rows of one origin belong into one table."""


def origin_text(origin: Mapping[str, Any]) -> str:
    """Return where rows come from, for a heading; `origin` has the columns :data:`ORIGIN`."""
    changed = " with uncommitted changes" if origin["dirty"] else ""
    parts = [
        origin["machine"],
        f"commit {origin['commit'][:8]}{changed}" if origin["commit"] else "no commit",
        place_text(origin),
        f"night {origin['night']}" if origin["night"] else "",
        f"effort {origin['effort']}",
    ]
    return " · ".join(filter(None, parts))


@functools.lru_cache(maxsize=4096)
def flags_of(environment: str | bytes, compared: bool = False) -> Mapping[str, str]:
    """Return the columns `xla_flags` and `env_vars` of a record, by its environment as JSON.

    A comparison with a baseline sets variables for its threads: of it no others are known.
    """
    flags = json.loads(environment or "{}").get("flags") or {}
    own = {name: flags[name] for name in flags if name == "XLA_FLAGS" or not compared}
    return told_apart(own, measured=True)


def place_text(place: Mapping[str, Any]) -> str:
    """Return an environment and what was set in it; `place` has the columns :data:`PLACE`."""
    flags = f"XLA_FLAGS={place['xla_flags']}" if place["xla_flags"] else ""
    return " ".join(filter(None, (place["env"], flags, place["env_vars"].replace(", ", " "))))


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
    names = {name for text in texts for name in json.loads(text)}
    return [column for column in frame.columns if column in names]


def axis_text(value: Any) -> str:
    """Return a text that equal values of an axis share, and no others; "" for none (NaN).

    1 and 1.0 are equal, True and 1 are not, nor are 1 and "1".
    """
    if isinstance(value, str):
        return f"s{value}"
    if isinstance(value, list | tuple):
        return f"t{[axis_text(one) for one in value]}"
    if hasattr(value, "item") and not getattr(value, "shape", ()):  # NumPy's own numbers
        value = value.item()
    if isinstance(value, bool):
        return f"b{value}"
    if isinstance(value, int | float):
        if value != value:
            return ""
        whole = isinstance(value, float) and math.isfinite(value) and value.is_integer()
        return f"n{int(value) if whole else value!r}"
    return "" if value is None else f"o{value!r}"


def axes_key(axes: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what equal axes share; those that are NaN are none."""
    texts = ((name, axis_text(value)) for name, value in sorted(axes.items()))
    return tuple(pair for pair in texts if pair[1])


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


def to_frame(
    columns: Mapping[str, Sequence[Any] | Array], axes: Sequence[Mapping[str, Any]], case: Array
) -> pd.DataFrame:
    """Return a frame of rows that are known by column.

    Args:
        columns: all of :data:`harness.frame.columns.COLUMNS` but `axes`; moments are int64
            milliseconds since 1970.
        axes: those of each case.
        case: the case of each row, as a position in `axes`.
    """
    named = [{axis_column(axis): value for axis, value in own.items()} for own in axes]
    data = {name: series(kind, columns[name]) for name, kind in COLUMNS.items() if name != AXES}
    data[AXES] = series(JSON, objects(map(encode_axes, named))[case])
    return pd.DataFrame(data | axis_values(named, case))


def axis_values(axes: Sequence[Mapping[str, Any]], case: Array) -> dict[str, Array]:
    """Return a column of objects per axis, NaN where a case lacks it; arguments as above."""
    columns: dict[str, Array] = {}
    for at, one in enumerate(axes):
        for name, value in one.items():
            if name not in columns:
                columns[name] = np.full(len(axes), math.nan, dtype=object)
            columns[name][at] = value
    return {name: column[case] for name, column in columns.items()}


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def series(kind: str, values: Sequence[Any] | Array) -> pd.Series[Any]:
    """Return a column that holds what `kind` says; moments come as in :func:`to_frame`."""
    if kind == MOMENT:
        moments = np.asarray(values, np.int64).view("datetime64[ms]")
        return pd.Series(pd.DatetimeIndex(moments, tz="UTC"))
    if kind in (NUMBER, COUNT):
        return pd.Series(np.asarray(values, np.float64 if kind == NUMBER else np.int64))
    cells = values if isinstance(values, np.ndarray) else objects(values)
    return pd.Series(cells, dtype="str" if kind == TEXT else object)
