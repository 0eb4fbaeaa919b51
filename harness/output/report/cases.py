"""Cases, origins and stages of a frame, in the words of the report on results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness.frame.cases import case_texts
from harness.frame.frame import INSTRUMENTS, ORIGIN, axis_columns, ordinary, stage_order
from harness.frame.pairs import CASE
from harness.verdicts.history.points import in_order

ADDED = ("case", "case_number", "one_case")
"""Columns that :func:`with_cases` adds."""


def with_cases(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the ordinary rows in seconds, with columns `case`, `case_number` and `one_case`.

    `case` names the axes, and the scenario or the machine where they are not the usual ones;
    `one_case` is of :func:`one_case`.
    """
    # As with every axis that bears the name of a column.
    taken = {name: f"axis_{name}" for name in ADDED if name in frame.columns}
    frame = ordinary(frame.rename(columns=taken))
    frame = frame[~frame["workload"].isin(INSTRUMENTS) & (frame["unit"] == "seconds")]
    keys = [name for name in ("machine", *CASE, *axis_columns(frame)) if name != "stage"]
    numbers = frame.groupby(keys, sort=False, dropna=False).ngroup()
    first = frame[~numbers.duplicated()]
    texts = {"case": full_case_texts(first), "one_case": one_case(first)}
    labels = pd.DataFrame(texts, numbers[first.index], dtype="str").loc[numbers]
    return frame.assign(case_number=numbers, **labels.set_index(frame.index))


def one_case(rows: pd.DataFrame, no_axes: Sequence[str] = ADDED) -> list[str]:
    """Return the name under which the page shows a case alone: its workload and axes.

    Scenarios and machines of one case share it. Arguments as of :func:`full_case_texts`.
    """
    texts = case_texts(rows, [name for name in axis_columns(rows) if name not in no_axes])
    return [" ".join(filter(None, pair)) for pair in zip(rows["workload"], texts, strict=True)]


def full_case_texts(
    rows: pd.DataFrame, no_axes: Sequence[str] = ADDED, machine: bool = True
) -> list[str]:
    """Return each row's case as text, with the scenario where it is not the usual one.

    Columns `no_axes` are no axes, besides those of a frame. With `machine`, rows of several
    machines name theirs.
    """
    axes = [name for name in axis_columns(rows) if name not in no_axes]
    return case_texts(rows, axes, scenario=True, machine="on " if machine else "")


def machine_picks(rows: pd.DataFrame) -> tuple[tuple[str, str, str], ...]:
    """Return what lets a figure show one of several machines at a time; none for one machine."""
    names = list(dict.fromkeys(rows["machine"]))
    return (("machine", "machine", names[0]),) if len(names) > 1 else ()


def origins(cases: pd.DataFrame) -> pd.DataFrame:
    """Return a row per origin: `machine` ... `night`, `started_at`, `jax`, `label`.

    They stand machine by machine, and those of a machine from the oldest to the newest, as in its
    history. `label` is the night or else the date, and the commit.
    """
    rows = cases.groupby(ORIGIN, sort=False, dropna=False, as_index=False).agg(
        started_at=("started_at", "max"), jax=("jax", "first"), commit_date=("commit_date", "max")
    )
    rows = rows.loc[
        [row for _, part in rows.groupby("machine", sort=False) for row in _in_time(part)]
    ]
    labels = origin_labels(rows["night"], rows["started_at"], rows["commit"])
    return rows.assign(label=labels).reset_index(drop=True)


def origin_labels(
    night: pd.Series[Any], started_at: pd.Series[Any], commit: pd.Series[Any]
) -> pd.Series[Any]:
    """Return the names of origins: the night or else the date, and the commit."""
    days = started_at.dt.strftime("%Y-%m-%d").fillna("no date")
    return night.where(night != "", days) + " " + commit.str[:8]


def _in_time(part: pd.DataFrame) -> list[Any]:
    """Return the index of one machine's origins from the oldest to the newest."""
    dates, started = (
        pd.DatetimeIndex(part[name]).as_unit("ms").asi8.tolist()
        for name in ("commit_date", "started_at")
    )
    return [part.index[place] for place in in_order(part["night"].tolist(), dates, started)]


def stages_of(frame: pd.DataFrame) -> list[str]:
    """Return the stages of a frame in the order in which they happen."""
    return sorted(set(frame["stage"]), key=stage_order)


def axes_of(cases: pd.DataFrame) -> list[str]:
    """Return the columns of :func:`with_cases`'s frame that hold axes."""
    return [name for name in axis_columns(cases) if name not in ADDED]
