"""Which row of one arm belongs to which row of the other."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from harness.frame import choose

if TYPE_CHECKING:
    import pandas as pd

CASE = ("machine", "workload", "target", "transform", "precision", "scenario", "stage")
"""Columns that two rows of a pair have in common, besides their axes."""


def case_key(
    workload: str,
    axes: Mapping[str, Any],
    target: str,
    transform: str,
    precision: str,
    scenario: str,
    stage: str,
) -> tuple[object, ...]:
    """Return what identifies a stage of a case on one machine; axes that are NaN are no axes."""
    known = sorted((name, axis_text(value)) for name, value in axes.items())
    own = tuple(pair for pair in known if pair[1])
    return (workload, own, target, transform, precision, scenario, stage)


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


def comparable_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that can be compared at all.

    Left out are those of comparisons with baselines, of instruments, and what is not a time.
    """
    frame = choose.ordinary(frame)
    return frame[~frame["workload"].isin(choose.INSTRUMENTS) & (frame["unit"] == "seconds")]


def pair(
    a: pd.DataFrame, b: pd.DataFrame, axes: Collection[str], on: Collection[str] = ()
) -> pd.DataFrame:
    """Return which rows belong together: positions `a` and `b`, int64, -1 where a side has none.

    Of several rows of a case in an arm the newest counts: that of the newest commit, and of those
    of one commit, or without any, the one that was measured last. One without a date is older than
    any other. Pairs come in the order of `a`; what only `b` has follows.

    Args:
        a: rows of :func:`comparable_rows`.
        b: the same of the other arm.
        axes: columns of either that hold axes.
        on: columns in which the arms differ by intention: rows of a pair need not share them.
    """
    import pandas as pd

    first, second = (_newest(arm, _keys(arm, axes, on)) for arm in (a, b))
    keys = list(dict.fromkeys((*first, *second)))
    return pd.DataFrame(
        {"a": [first.get(key, -1) for key in keys], "b": [second.get(key, -1) for key in keys]},
        dtype="int64",
    )


def _keys(frame: pd.DataFrame, axes: Collection[str], on: Collection[str]) -> list[Any]:
    shared = [name for name in CASE if name not in on]
    columns: list[list[Any]] = [frame[name].to_list() for name in shared]
    for axis in axes:
        if axis in frame.columns and axis not in on:
            columns.append(_axis_texts(frame[axis]))
        else:
            columns.append([""] * len(frame))
    return list(zip(*columns, strict=True))


def _axis_texts(values: pd.Series[Any]) -> list[str]:
    texts = [""] * len(values)
    # Most workloads lack most axes.
    known = values.to_numpy(object)
    for position in values.notna().to_numpy().nonzero()[0].tolist():
        texts[position] = axis_text(known[position])
    return texts


def _newest(frame: pd.DataFrame, keys: list[Any]) -> dict[Any, int]:
    """Return the position of the newest row of each key, keys in the order of the frame."""
    import numpy as np
    import pandas as pd

    started = pd.to_datetime(frame["started_at"], utc=True, errors="coerce")
    dates = started
    if "commit_date" in frame.columns:
        # The clocks of the machines that share a name may differ, what was committed does not.
        dates = pd.to_datetime(frame["commit_date"], utc=True, errors="coerce").fillna(started)
    # NaT is the least number there is.
    order, clock = (
        column.to_numpy("datetime64[ms]").view(np.int64).tolist() for column in (dates, started)
    )
    moments = list(zip(order, clock, strict=True))
    found: dict[Any, int] = {}
    for position, key in enumerate(keys):
        earlier = found.get(key)
        if earlier is None or moments[position] >= moments[earlier]:
            found[key] = position
    return found
