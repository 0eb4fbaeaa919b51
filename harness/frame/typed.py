"""The two faces of a frame: cells that pandas can do everything with, and those of the house.

Outside (:func:`plain`) lists are JSON text, and an axis has a column of one type: its numbers,
truths or texts. What else it holds, of other workloads, is text in another, `AXIS_text`. Inside
(:func:`typed`) lists are lists, and axes are Python's objects, made of the column `axes`: so
whatever happened to a frame outside, answers are the same.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Container
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import pandas as pd

from harness.errors import HarnessWarning, UsageError
from harness.frame.columns import (
    AXES,
    COLUMNS,
    COUNT,
    JSON,
    LISTS,
    MOMENT,
    NUMBER,
    NUMBERS,
    decode_axes,
    is_missing,
    objects,
)
from harness.frame.frame import axis_values

_Function = TypeVar("_Function", bound=Callable[..., Any])

LEFT_OUT = "left_out"
"""What `frame.attrs` calls that which a first look leaves out."""

_encode = msgspec.json.Encoder().encode
_INTEGERS = range(-(2**63), 2**63)
_LIST: dict[str, Any] = {
    name: msgspec.json.Decoder(list[float | None] if COLUMNS[name] == NUMBERS else list[str])
    for name in LISTS
}


def takes_frame(function: _Function) -> _Function:
    """Have a function's argument `frame`, if it is one, as the house has it; answer likewise.

    Who gives a frame of the house gets such a one; others get a plain one, and are told where the
    answer may be in what a first look leaves out.
    """

    @functools.wraps(function)
    def taking(*args: Any, **named: Any) -> Any:
        first, *rest = args or (named.pop("frame", None),)
        if not isinstance(first, pd.DataFrame):
            return plain(function(first, *rest, **named))
        frame = typed(first)
        left_out = first.attrs.get(LEFT_OUT)
        hint = f"The frame is a first look, without {left_out}: see harness.load(all=True)."
        try:
            answer = function(frame, *rest, **named)
        except UsageError as error:
            raise (UsageError(f"{error} {hint}") if left_out else error) from None
        if left_out and answer.empty:
            warnings.warn(hint, HarnessWarning, stacklevel=2)
        if frame is first:
            return answer
        texts = frame[AXES].unique() if AXES in frame.columns else ()
        axes = {name for text in texts for name in decode_axes(text or "{}")}
        return plain(answer, {*axes, *(f"axis_{name}" for name in axes)})

    return cast(_Function, taking)


def plain(frame: pd.DataFrame, axes: Container[Any] | None = None) -> pd.DataFrame:
    """Return a frame in whose cells is nothing that pandas cannot sort, compare, write and read.

    `axes` are the columns of axes, None for all of objects; others of several types are text.
    """
    columns: dict[Any, Any] = {}
    for name, column in frame.items():
        if column.dtype != object:
            columns[name] = column
        elif name in LISTS:
            columns[name] = pd.Series(list(map(list_text, column)), frame.index, dtype="str")
        elif name in COLUMNS:
            columns[name] = column.astype("str")
        else:
            split = axes is None or name in axes
            columns |= _of_one_type(str(name), column, frame.columns, split)
    made = pd.DataFrame(columns, frame.index, copy=False)
    made.attrs |= frame.attrs
    return made


def list_text(cell: list[Any] | str | None) -> str:
    """Return the JSON text of a list, with null for NaN; a text as it is."""
    return cell if isinstance(cell, str) else _encode(cell or []).decode()


def _of_one_type(
    name: str, column: pd.Series[Any], taken: Container[Any], split: bool
) -> dict[str, pd.Series[Any]]:
    """Return the columns of an axis, each of one type: `name`, and `name_text` for what is left."""
    kinds = np.array(list(map(_kind, column)), object)
    found = [kind for kind in ("float64", "boolean", "str") if (kinds == kind).any()]
    if found[1:] and not split:
        kinds[kinds != ""], found = "str", ["str"]
    first: Any = found[0] if found else "float64"
    own = column.where(kinds == first, None)
    if first == "float64" and all(isinstance(cell, int | np.integer) for cell in own.dropna()):
        first = "Int64" if found else first
    if first == "str":
        own = own.map(str, na_action="ignore")
    columns = {name: own.astype(first)}
    if found[1:]:
        beside = f"{name}_text"
        while beside in taken:
            beside += "_"
        rest = column.where(np.isin(kinds, found[1:]), None)
        columns[beside] = rest.map(str, na_action="ignore").astype("str")
    return columns


def _kind(cell: Any) -> str:
    """Return the type of the column that a cell of an axis belongs into; "" where it lacks one."""
    if is_missing(cell) or cell is pd.NA:
        return ""
    if isinstance(cell, bool | np.bool_):
        return "boolean"
    if isinstance(cell, float | np.floating):
        return "float64"
    return "float64" if isinstance(cell, int | np.integer) and cell in _INTEGERS else "str"


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame as the house has it; itself where it is.

    What is no column of ours stays as it is.

    Raises:
        UsageError: a column holds what cannot be of its type; it is named.
    """
    columns: dict[Any, Any] = {}
    for name, kind in COLUMNS.items():
        if name not in frame.columns or _is_typed(name, kind, frame[name]):
            continue
        try:
            columns[name] = _typed(name, kind, frame[name])
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            raise UsageError(
                f"The column {name!r} cannot be read as it is ({error}). Expected a frame such as "
                "harness.load returns; a column of other values may stand beside it."
            ) from None
    if AXES in frame.columns:
        codes, texts = pd.factorize(columns.get(AXES, frame[AXES]))
        axes = [decode_axes(text or "{}") for text in texts]
        for name, values in axis_values(axes, codes).items():
            if columns or name not in frame.columns or frame[name].dtype != object:
                columns[name] = pd.Series(values, frame.index, dtype=object)
    return frame.assign(**columns) if columns else frame


def _is_typed(name: str, kind: str, column: pd.Series[Any]) -> bool:
    if name in LISTS:
        return column.dtype == object and (column.empty or isinstance(column.iloc[0], list))
    if kind == MOMENT:
        return isinstance(column.dtype, pd.DatetimeTZDtype)
    if kind in (NUMBER, COUNT):
        return isinstance(column.dtype, np.dtype) and column.dtype.kind in "fi"
    held = (object, "str") if kind == JSON and name != AXES else ("str",)
    return column.dtype in held and not column.hasnans


def _typed(name: str, kind: str, column: pd.Series[Any]) -> pd.Series[Any]:
    if name in LISTS:
        decode = _LIST[name].decode
        return pd.Series(objects(_items(cell, decode) for cell in column), column.index)
    if kind == MOMENT:
        return pd.to_datetime(column, utc=True).astype("datetime64[ms, UTC]")
    if kind in (NUMBER, COUNT):
        numbers = pd.to_numeric(column.replace("", None)).to_numpy(float, na_value=math.nan)
        if kind == COUNT:
            numbers = np.nan_to_num(numbers).astype(np.int64)
        return pd.Series(numbers, column.index)
    return column.astype(object).where(column.notna(), "").astype("str")


def _items(cell: Any, decode: Callable[[str], list[Any]]) -> list[Any]:
    """Return the list that a cell holds, or the JSON text of one."""
    if not isinstance(cell, str):
        return list(cell) if hasattr(cell, "__len__") else []
    items = decode(cell or "[]")
    return [math.nan if item is None else item for item in items] if "null" in cell else items
