"""The rows that the sections share: which case each belongs to, and which are the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.analysis.choose import INSTRUMENTS, ORIGIN, ordinary
from harness.analysis.frame import STAGE_ORDER, axis_columns
from harness.analysis.tables import case_texts

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
    texts = []
    for text, scenario, machine in zip(
        case_texts(first), first["scenario"], first["machine"], strict=True
    ):
        shown = f"scenario={scenario}" if scenario not in ("", "off") else ""
        texts.append(", ".join(filter(None, [text, shown, f"on {machine}" if several else ""])))
    by_number = dict(zip(numbers[first.index], texts, strict=True))
    return frame.assign(case_number=numbers, case=numbers.map(by_number).astype("str"))


def newest(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the row that was measured last of each case and stage."""
    ordered = cases.sort_values("started_at", na_position="first", kind="stable")
    last = ordered.drop_duplicates(["case_number", "stage"], keep="last")
    return last.loc[cases.index.intersection(last.index, sort=False)]


def origins(cases: pd.DataFrame) -> pd.DataFrame:
    """Return a row per origin, oldest first: `machine` ... `night`, `started_at`, `jax`, `label`.

    `label` is the night or else the date, and the commit.
    """
    found = cases.groupby(ORIGIN, sort=False, dropna=False, as_index=False).agg(
        started_at=("started_at", "max"), jax=("jax", "first")
    )
    found = found.sort_values("started_at", na_position="first", kind="stable")
    days = found["started_at"].dt.strftime("%Y-%m-%d").fillna("no date")
    names = found["night"].where(found["night"] != "", days)
    return found.assign(label=names + " " + found["commit"].str[:8]).reset_index(drop=True)


def stages_of(frame: pd.DataFrame) -> list[str]:
    """Return the stages of a frame in the order in which they happen."""
    present = set(frame["stage"])
    return [*(s for s in STAGE_ORDER if s in present), *sorted(present - set(STAGE_ORDER))]


def axes_of(cases: pd.DataFrame) -> list[str]:
    """Return the columns of :func:`with_cases`'s frame that hold axes."""
    return [name for name in axis_columns(cases) if name not in ADDED]
