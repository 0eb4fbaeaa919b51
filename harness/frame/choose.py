"""Choose rows of a frame: by workload, and by what was measured last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.declare.filters import Filters, is_value, wanted_values
from harness.errors import UsageError, find_name, match_names
from harness.frame.frame import axis_columns

if TYPE_CHECKING:
    import pandas as pd

INSTRUMENTS = frozenset({"process", "reference"})
"""Workloads that measure the process and the machine, and are no one's result."""

ORIGIN = ["machine", "commit", "dirty", "env", "effort", "night"]
"""Columns that say where rows come from; rows of one origin belong into one table."""

COORDINATES = ("transform", "target", "precision", "scenario")
"""Columns that tell cases apart, besides their axes."""


def ordinary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ordinary measurements: without those of comparisons with baselines."""
    return frame[frame["threads"] == ""]


def narrow(frame: pd.DataFrame, select: Sequence[str], latest: bool) -> pd.DataFrame:
    """Return the rows whose workload matches any of `select`, of the newest origins if `latest`.

    Every machine has a newest origin of its own, by its own clock: no machine hides another.

    Raises:
        UsageError: an expression is wrong, or matches no workload.
    """
    if select:
        names = sorted(frame["workload"].unique())
        chosen = {name for each in select for name in match_names(each, names, "workload")}
        frame = frame[frame["workload"].isin(chosen)]
    if latest:
        origins = frame.groupby(ORIGIN, sort=False, dropna=False)["started_at"]
        number, moments = origins.ngroup(), origins.max().reset_index()
        moments = moments.sort_values("started_at", kind="stable")
        dated = moments[moments["started_at"].notna()]
        newest = dated.drop_duplicates("machine", keep="last")
        undated = moments[~moments["machine"].isin(newest["machine"])]
        frame = frame[number.isin([*newest.index, *undated.index])]
    return frame


def rows(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """Return the rows that are wanted.

    Raises:
        UsageError: nothing is like one of the filters, or no row has all that is asked for.
    """
    frame = narrow(frame, filters.select, latest=False)
    for column in ("stage", "target", "scenario"):
        names = frame[column].unique()
        asked = [find_name(name, names, column) for name in getattr(filters, column)]
        if asked:
            frame = frame[frame[column].isin(asked)]
    columns = {str(column).casefold(): column for column in frame.columns}
    coordinates = [*axis_columns(frame), *COORDINATES]
    known = frame
    for axis, texts in wanted_values(filters.case).items():
        column = columns[find_name(axis, coordinates, "axis").casefold()]
        frame = frame[[is_value(value, texts) for value in frame[column]]]
    if filters.case and frame.empty and not known.empty:
        raise UsageError(f"No row has {' and '.join(filters.case)}.")
    return frame


def by_origin(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a heading and the rows for each origin, machine by machine, oldest first."""
    groups = list(frame.groupby(ORIGIN, sort=False, dropna=False))
    # Each machine's clock orders its own origins only.
    groups.sort(key=lambda group: (str(group[0][0]), group[1]["started_at"].max()))
    for origin, part in groups:
        machine, commit, dirty, env, effort, night = map(str, origin)
        changed = " with uncommitted changes" if dirty else ""
        at = f"commit {commit[:8]}{changed}" if commit else "no commit"
        when = f" · night {night}" if night else ""
        cases = part[~part["workload"].isin(INSTRUMENTS)]
        processes = (part if cases.empty else cases)["n_processes"].max()
        yield f"{machine} · {at} · {env}{when} · effort {effort} (n = {processes} processes)", part
