"""A frame as it was loaded, from one that has been through pandas: CSV, other dtypes, an index."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame import axes_text
from harness.frame.frame import AXES, COLUMNS, COUNT, LISTS, MOMENT, NUMBER, TEXT, objects

_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_frame(function: _Function) -> _Function:
    """Have a function's argument `frame`, if it is one, in the types that `load` gives it."""

    @functools.wraps(function)
    def taking(*args: Any, **named: Any) -> Any:
        first, *rest = args or (named.pop("frame", None),)
        return function(typed(first) if isinstance(first, pd.DataFrame) else first, *rest, **named)

    return cast(_Function, taking)


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns have their types again; itself where they have.

    What is no column of ours stays as it is. Axes are made anew from the column `axes`.

    Raises:
        UsageError: a column holds what cannot be of its type; it is named.
    """
    known = {name: kind for name, kind in COLUMNS.items() if name in frame.columns}
    foreign = [name for name, kind in known.items() if not _is_typed(name, kind, frame[name])]
    if not foreign:
        return frame
    columns: dict[Any, Any] = {}
    for name in foreign:
        try:
            columns[name] = _typed(name, COLUMNS[name], frame[name])
        except (ValueError, TypeError, SyntaxError) as error:
            raise UsageError(
                f"The column {name!r} cannot be read as it is ({error}). Expected a frame such as "
                "harness.load returns; a column of other values may stand beside it."
            ) from None
    if AXES in known:
        texts = columns.get(AXES, frame[AXES])
        axes = {text: axes_text.decode(text or "{}") for text in texts.unique()}
        for name in {name for one in axes.values() for name in one} & set(frame.columns):
            values = objects(axes[text].get(name, math.nan) for text in texts)
            columns[name] = pd.Series(values, frame.index, dtype=object)
    return frame.assign(**columns)


def _is_typed(name: str, kind: str, column: pd.Series[Any]) -> bool:
    if name in LISTS:
        return column.empty or isinstance(column.iloc[0], list)
    if kind == MOMENT:
        return isinstance(column.dtype, pd.DatetimeTZDtype)
    if kind in (NUMBER, COUNT):
        return isinstance(column.dtype, np.dtype) and column.dtype.kind in "fi"
    return kind != TEXT or (column.dtype == "str" and not column.hasnans)


def _typed(name: str, kind: str, column: pd.Series[Any]) -> pd.Series[Any]:
    if name in LISTS:
        return column.map(_items).astype(object)
    if kind == MOMENT:
        return pd.to_datetime(column, utc=True).astype("datetime64[ms, UTC]")
    if kind in (NUMBER, COUNT):
        numbers = pd.to_numeric(column.replace("", None)).to_numpy(float, na_value=math.nan)
        if kind == COUNT:
            numbers = np.nan_to_num(numbers).astype(np.int64)
        return pd.Series(numbers, column.index)
    return column.astype(object).where(column.notna(), "").astype("str")


def _items(cell: Any) -> list[Any]:
    """Return the list that a cell holds, or the text of one."""
    if not isinstance(cell, str):
        return list(cell) if hasattr(cell, "__len__") else []
    names = {"nan": math.nan, "inf": math.inf}
    found = ast.parse(cell.strip() or "[]", mode="eval").body
    if not isinstance(found, ast.List):
        raise ValueError(f"expected a list, not {cell[:40]!r}")
    return [
        names[one.id] if isinstance(one, ast.Name) and one.id in names else ast.literal_eval(one)
        for one in found.elts
    ]
