"""From a profile's frames to tables of the page."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
from pandas.api import types

from harness.output.profile_tables import frame
from harness.output.report.content import Column, ColumnKind, Table
from harness.profiles import tracks
from harness.profiles.names import line_text
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.model import Process
    from harness.profiles.recorded import Recorded


class Shown:
    """A profile that a page shows; each table is made once."""

    def __init__(self, profile: Recorded) -> None:
        self.profile = profile
        self.clock = tracks.Clock(profile)
        self.names = tracks.process_names(profile)
        """Of processes, by what their logs call them."""
        self.threads = {one.name: tracks.thread_names(one) for one in profile.processes}

    def row(self, process: Process, thread: int) -> str:
        """Return the name of a thread, with that of its process."""
        return f"{self.names[process.name]} {self.threads[process.name][thread]}"

    def seconds(self, process: Process, at_ns: int) -> float:
        """Return a time of a process in seconds since the profile began."""
        return self.clock.at(process, at_ns) / 1e9

    @functools.cache  # noqa: B019 - lives as long as the page is made
    def frame(self, table: str) -> pd.DataFrame:
        """Return a table with processes and threads called as everywhere on the page."""
        made = frame(self.profile, table)
        if "file" in made.columns:  # as call sites are: from where the program was started
            folders = {f"{one.started.cwd}/" for one in self.profile.processes}
            folder = folders.pop() if len(folders) == 1 else "/ several"
            made = made.assign(file=made["file"].str.removeprefix(folder))
        if "process" not in made.columns:
            return made
        if table == "threads":
            places = zip(made["process"], made["thread"], strict=True)
            # Those that built nothing were only seen: their numbers follow the others'.
            made = made.assign(
                thread=[
                    self.threads[name].setdefault(of, f"thread {len(self.threads[name])}")
                    for name, of in places
                ]
            )
        return made.assign(process=[self.names.get(name, name) for name in made["process"]])


MOST = 1500
"""Rows of one table on the page."""

LABELS = {
    "call_site": "called at",
    "call_sites": "called at",
    "begin_s": "began at",
    "build_s": "took",
    "again": "built again",
    "again_s": "again took",
    "first_call_s": "first call",
    "visits": "misses that built nothing",
    "visit_s": "misses took",
    "n_call_sites": "call sites",
    "sentence": "what happened",
    "n_values": "number of values",
    "saved_known": "hits with known savings",
    "wall_s": "wall time",
    "recorded_s": "recorded for",
    "own_s": "cost of the profile",
}
"""Headings that are not the columns' names."""

_LEFT_OUT = ("qualname", "line", "site_function", "first_at_s", "other_s")


def _kind_of(name: str, values: pd.Series) -> ColumnKind:
    """Return the kind of a column by its name, and by what is in it."""
    if types.is_bool_dtype(values) or not types.is_numeric_dtype(values):
        return ColumnKind.TEXT
    if name == "seconds" or name.endswith("_s"):
        return ColumnKind.SECONDS
    if name == "bytes" or name.endswith("_bytes"):
        return ColumnKind.BYTES
    if name == "share":
        return ColumnKind.SHARE
    return ColumnKind.COUNT if types.is_integer_dtype(values) else ColumnKind.NUMBER


def _says_nothing(values: pd.Series) -> bool:
    if values.name == "process":
        return values.nunique() < 2
    return not values.fillna(0).astype(bool).any()


def table(
    name: str, caption: str, frame: pd.DataFrame, first: Sequence[str] = (), most: int = MOST
) -> Table:
    """Return a frame, whose columns end in their unit, as a table of its `most` first rows.

    Columns `first` stand in front; others without a value are left out.
    """
    if {"file", "line"} <= set(frame.columns):
        places = [line_text(*at) for at in zip(frame["file"], frame["line"], strict=True)]
        frame = frame.drop(columns="file").assign(defined=places)
    front = [column for column in first if column in frame.columns]
    rest = [c for c in frame.columns if c not in front and c not in _LEFT_OUT]
    shown = frame[[*front, *rest]].head(most).reset_index(drop=True)
    columns = tuple(
        Column(
            column,
            # As a heading, without unit and underscores.
            LABELS.get(column)
            or column.removesuffix("_s").removesuffix("_bytes").replace("_", " "),
            _kind_of(column, shown[column]),
            stage=column.removesuffix("_s") if column.removesuffix("_s") in STAGES else "",
            hidden=column not in front and _says_nothing(shown[column]),
        )
        for column in map(str, shown.columns)
    )
    nothing = {c.name: shown[c.name].where(shown[c.name] > 0) for c in columns if c.stage}
    return Table(name, caption, columns, shown.assign(**nothing))
