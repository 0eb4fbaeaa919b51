"""What the functions on frames share: what tells cases apart, their names, and a row per case."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_object_dtype

from harness.errors import UsageError
from harness.frame.columns import is_missing
from harness.frame.frame import (
    INSTRUMENTS,
    ORIGIN,
    axes_key,
    axis_column,
    axis_columns,
    flags_of,
    ordinary,
)
from harness.records.schema import Record, plain_axes
from harness.workload.axes import shown

CASE = [*ORIGIN, "jax", "workload", "version", "target", "transform", "precision", "scenario"]
"""Columns that tell cases apart, besides their axes: all of them text."""

IDENTITY = ("workload", *ORIGIN, "version", "target", "transform", "precision", "scenario")
"""What a row and the records behind it share, besides their axes."""

FROM = "Take a frame from harness.load(...) or harness.sweep(...)."


def check(frame: pd.DataFrame, function: str, columns: Sequence[str] = ()) -> None:
    """Raise :class:`UsageError` unless `frame` has the columns that the functions on frames read.

    Args:
        frame: what the user gave.
        function: who asks, for the text of the error.
        columns: those that the function reads besides the ones that all of them read.
    """
    if not isinstance(frame, pd.DataFrame):
        raise UsageError(f"{function} got a {type(frame).__name__}, expected a frame. {FROM}")
    needed = [*CASE, "stage", "unit", "value", "status", "threads", *columns]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise UsageError(f"{function} got a frame without {', '.join(missing)}. {FROM}")


def case_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that tell cases apart: :data:`CASE` and the axes."""
    return [*CASE, *axis_columns(frame)]


def measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that hold the seconds of a stage of an ordinary case, numbered anew.

    Frames that were put together may hold a number twice.
    """
    rows = ordinary(frame)
    own = ~rows["workload"].isin(INSTRUMENTS)
    timed = (rows["status"] == "ok") & rows["value"].notna() & (rows["unit"] == "seconds")
    return rows[own & timed].reset_index(drop=True)


def keys(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series[int]:
    """Return a number for each row, equal for rows that are equal in `columns`.

    Values of an axis are told apart by their text, because they may be of several types, lists and
    NaN. Rows taken with other flags or on another device are of other cases, so their environment
    takes part.
    """
    if frame.empty:
        return pd.Series(0, frame.index, dtype="int64")
    codes = {}
    for name in (*columns, *(["environment"] if "environment" in frame.columns else [])):
        values = frame[name]
        texts = list(map(repr, values)) if is_object_dtype(values.dtype) else values
        codes[name] = pd.factorize(pd.Series(texts, frame.index))[0]
    table = pd.DataFrame(codes, frame.index)
    return table.groupby(list(codes), sort=False).ngroup()


def by_stage(rows: pd.DataFrame, key: pd.Series[int]) -> pd.DataFrame:
    """Return the seconds of rows: one row per key, in the order in which they come, stages beside.

    Of rows that are equal in key and stage the last one counts.
    """
    long = pd.DataFrame({"key": key, "stage": rows["stage"], "value": rows["value"]})
    long = long.drop_duplicates(["key", "stage"], keep="last")
    wide = long.pivot(index="key", columns="stage", values="value")
    return wide.reindex(long["key"].drop_duplicates())


def about(
    rows: pd.DataFrame, columns: Sequence[str], key: pd.Series[int], table: pd.DataFrame
) -> pd.DataFrame:
    """Return some columns of the first row of each key, in the order of :func:`by_stage`."""
    described = rows[list(columns)].set_index(key)
    return described[~described.index.duplicated()].reindex(table.index)


def free_names(axes: Sequence[str], taken: Container[Hashable]) -> dict[str, str]:
    """Return a new name for each axis that a result has a column of its own for.

    An axis `value` becomes `axis_value`, as in the frame.
    """
    names = {}
    for axis in axes:
        if axis in taken:
            names[axis] = f"axis_{axis}"
            while names[axis] in taken or names[axis] in axes:
                names[axis] = f"axis_{names[axis]}"
    return names


def origin_of(record: Record) -> dict[str, str]:
    """Return the columns :data:`ORIGIN` of a record."""
    flags = flags_of(bytes(record.environment), record.comparison is not None)
    return {name: flags[name] if name in flags else getattr(record, name) for name in ORIGIN}


def key_of_row(row: Mapping[str, Any], axes: Sequence[str]) -> tuple[Any, ...]:
    """Return what a row shares with the records behind it; the first is its workload."""
    own = {axis: row[axis] for axis in axes if axis in row}
    return (*(row[name] for name in IDENTITY), axes_key(own))


def key_of_record(record: Record) -> tuple[Any, ...]:
    """Return what a record shares with its row."""
    axes = {axis_column(name): value for name, value in plain_axes(record.axes).items()}
    origin = origin_of(record)
    parts = (origin[name] if name in origin else getattr(record, name) for name in IDENTITY)
    return (*parts, axes_key(axes))


def case_texts(
    frame: pd.DataFrame,
    axes: Sequence[str] | None = None,
    *,
    scenario: bool = False,
    machine: str = "",
) -> list[str]:
    """Return :func:`case_text` of each row.

    Args:
        frame: has `transform`, `target`, `precision`, and axes.
        axes: its columns of axes; None means those that no frame of results has.
        scenario: whether to name it.
        machine: what stands before the machine where rows are of several; "" leaves it out.
    """
    axes = axis_columns(frame) if axes is None else list(axes)
    about = frame[["transform", "target", "precision"]].assign(
        scenario=frame["scenario"] if scenario else "",
        machine=machine + frame["machine"] if machine and frame["machine"].nunique() > 1 else "",
    )
    values = frame[axes].to_numpy(object).tolist()
    return [
        ", ".join(filter(None, (case_text(dict(zip(axes, own, strict=True)), *named), where)))
        for own, (*named, where) in zip(values, about.to_numpy().tolist(), strict=True)
    ]


def full_names(frame: pd.DataFrame, axes: Sequence[str] | None = None, **shown: Any) -> list[str]:
    """Return the workload and the case of each row; arguments as of :func:`case_texts`."""
    pairs = zip(frame["workload"], case_texts(frame, axes, **shown), strict=True)
    return [f"{workload} {case}".rstrip() for workload, case in pairs]


def case_text(
    axes: Mapping[str, Any], transform: str, target: str, precision: str = "", scenario: str = ""
) -> str:
    """Return a case as short text; an axis that it lacks and what is usual are left out."""
    parts = [f"{name}={shown(value)}" for name, value in axes.items() if not is_missing(value)]
    for name, value, usual in (
        ("precision", precision, ""),
        ("transform", transform, "forward"),
        ("target", target, "cpu"),
        ("scenario", scenario, "off"),
    ):
        parts += [f"{name}={value}"] if value not in ("", usual) else []
    return ", ".join(parts)
