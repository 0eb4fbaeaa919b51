"""The rows that the sections share: which case each belongs to, and which are the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.frame.frame import INSTRUMENTS, NO_MOMENT, ORIGIN, axis_columns, ordinary, stage_order
from harness.frame.tables import case_texts
from harness.verdicts.history.order import in_order

if TYPE_CHECKING:
    import pandas as pd

CASE = ("machine", "workload", "target", "transform", "precision", "scenario")
"""Columns that, with the axes, tell cases apart, whatever commit they were measured at."""

ADDED = ("case", "case_number")
"""Columns that :func:`with_cases` adds."""


def with_cases(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the ordinary rows in seconds, with columns `case` (text) and `case_number`.

    `case` names the axes, and the scenario or the machine where they are not the usual ones.
    """
    # As with every axis that bears the name of a column.
    taken = {name: f"axis_{name}" for name in ADDED if name in frame.columns}
    frame = ordinary(frame.rename(columns=taken))
    frame = frame[~frame["workload"].isin(INSTRUMENTS) & (frame["unit"] == "seconds")]
    keys = [*CASE, *axis_columns(frame)]
    numbers = frame.groupby(keys, sort=False, dropna=False).ngroup()
    first = frame[~numbers.duplicated()]
    several = first["machine"].nunique() > 1
    texts = [
        ", ".join(filter(None, [text, f"on {machine}" if several else ""]))
        for text, machine in zip(plain_case_texts(first), first["machine"], strict=True)
    ]
    by_number = dict(zip(numbers[first.index], texts, strict=True))
    return frame.assign(case_number=numbers, case=numbers.map(by_number).astype("str"))


def plain_case_texts(cases: pd.DataFrame) -> list[str]:
    """Return each row's case as text, with the scenario where it is not the usual one."""
    own = cases.drop(columns=[name for name in ADDED if name in cases.columns])
    return [
        ", ".join(
            filter(None, [text, f"scenario={scenario}" if scenario not in ("", "off") else ""])
        )
        for text, scenario in zip(case_texts(own), own["scenario"], strict=True)
    ]


def machine_picks(rows: pd.DataFrame) -> tuple[tuple[str, str, str], ...]:
    """Return what lets a figure show one of several machines at a time; none for one machine."""
    names = list(dict.fromkeys(rows["machine"]))
    return (("machine", "machine", names[0]),) if len(names) > 1 else ()


def newest(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the newest row of each case and stage: of the newest commit, and there the last."""
    date = cases["commit_date"].fillna(cases["started_at"])
    ordered = cases.assign(date=date).sort_values(
        ["date", "started_at"], na_position="first", kind="stable"
    )
    last = ordered.drop_duplicates(["case_number", "stage"], keep="last")
    return cases.loc[cases.index.intersection(last.index, sort=False)]


def origins(cases: pd.DataFrame) -> pd.DataFrame:
    """Return a row per origin: `machine` ... `night`, `started_at`, `jax`, `label`.

    They stand machine by machine, and those of a machine from the oldest to the newest, as in its
    history. `label` is the night or else the date, and the commit.
    """
    found = cases.groupby(ORIGIN, sort=False, dropna=False, as_index=False).agg(
        started_at=("started_at", "max"),
        jax=("jax", "first"),
        commit_date=("commit_date", "max"),
    )
    found = found.loc[[row for _, part in found.groupby("machine") for row in _in_time(part)]]
    days = found["started_at"].dt.strftime("%Y-%m-%d").fillna("no date")
    names = found["night"].where(found["night"] != "", days)
    return found.assign(label=names + " " + found["commit"].str[:8]).reset_index(drop=True)


def _in_time(part: pd.DataFrame) -> list[Any]:
    """Return the index of one machine's origins from the oldest to the newest."""
    dates, started = (
        [
            NO_MOMENT if moment is None or moment != moment else int(moment.timestamp() * 1000)
            for moment in part[name]
        ]
        for name in ("commit_date", "started_at")
    )
    return [part.index[place] for place in in_order(part["night"].tolist(), dates, started)]


def stages_of(frame: pd.DataFrame) -> list[str]:
    """Return the stages of a frame in the order in which they happen."""
    return sorted(set(frame["stage"]), key=stage_order)


def axes_of(cases: pd.DataFrame) -> list[str]:
    """Return the columns of :func:`with_cases`'s frame that hold axes."""
    return [name for name in axis_columns(cases) if name not in ADDED]
