"""The tables as people read them in a terminal: the main columns, as text."""

from __future__ import annotations

import math
from operator import add
from typing import Any

import pandas as pd

from harness.profiles.names import shortened, transformed
from harness.profiles.tables.builds import places, type_of
from harness.profiles.tables.frames import TABLES
from harness.records.units import seconds_text

LONG = frozenset({"values", "call_sites", "causes", "functions", "sentence", "remedy", "meaning"})
"""Columns that may take several lines."""

_WIDEST = 60
"""Characters of a value that are shown; half of it where a line is short."""

_FOLDED = 24
"""Characters that a column of several lines needs."""

_SHORT = 180
"""Characters of a line that is short."""

_BETWEEN = 2
"""Spaces behind each column."""


def listed(
    frame: pd.DataFrame, table: str, most: int | None, width: int = 200
) -> tuple[pd.DataFrame, str]:
    """Return a frame of text with the main columns that fit, and a line on what is left out.

    Args:
        frame: one of the tables.
        table: its name.
        most: rows that are shown; None for all.
        width: characters of a line.
    """
    if table == "builds":
        frame = frame.sort_values("build_s", ascending=False, kind="stable")
    if table == "time":
        frame = _times(frame)
    if "function" in frame and "through" in frame:
        names = map(transformed, frame["function"], frame["through"])
        frame = frame.assign(function=[*map(add, names, places(frame))])
    shown = frame if most is None else frame.head(most)
    # A column of nothing but zeros or empty texts says nothing.
    main = TABLES[table].main.split()
    columns = [name for name in main if shown[name].fillna(0).astype(bool).any()]
    widest = _WIDEST if width >= _SHORT else _WIDEST // 2
    rows = pd.DataFrame(
        [
            [_cell(name, value, widest) for name, value in zip(columns, row, strict=True)]
            for row in shown[columns].itertuples(index=False, name=None)
        ],
        columns=columns,
        dtype="str",
    )
    while _width(rows) > width and len(rows.columns) > 1:
        rows = rows.iloc[:, :-1]
    missing = columns[len(rows.columns) :]
    notes = []
    if left := len(frame) - len(shown):
        notes.append(f"{left:,} more rows: --format csv has them all, and every column.")
    if missing:
        notes.append(f"Left out, the line is too short: {', '.join(missing)}.")
    return rows, "\n".join(notes)


def _times(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the parts that took time; of the processes only where there are several."""
    if frame["process"].nunique() <= 2:  # the run, and the only process
        frame = frame[frame["scope"] == "run"]
    frame = frame[frame["seconds"] > 0]
    return frame.assign(process=[name or "the whole run" for name in frame["process"]])


def _width(rows: pd.DataFrame) -> int:
    """Return the characters of a line that columns need."""
    total = 0
    for name in rows:
        needed = max([len(str(name)), *map(len, rows[name])])
        total += _BETWEEN + (min(needed, _FOLDED) if name in LONG else needed)
    return total


def is_number(heading: str) -> bool:
    """Return whether a column is set to the right."""
    return type_of(heading) != "str"


def _cell(name: str, value: Any, widest: int) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if name == "share":
            return f"{100 * value:.1f} %"
        if name.endswith("_s") or name in ("seconds", "low", "high"):
            return seconds_text(value) if value > 0 else "0"
        return f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}" if name != "thread" else str(value)
    text = str(value)
    if name in LONG:
        return shortened(text, 4 * _WIDEST)
    return shortened(text, widest)
