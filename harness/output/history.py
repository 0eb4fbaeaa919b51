"""Change points as text for people and programs. Nothing prints."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

import pandas as pd

from harness.errors import UsageError
from harness.frame.cases import full_names
from harness.frame.frame import PLACE, place_text, rows_of
from harness.output.verdicts import calls_text
from harness.records.units import ratio_text, value_text
from harness.stages.registry import effect
from harness.verdicts.history.change_points import COLUMNS, ENVIRONMENT, PROGRAM, REFERENCE
from harness.verdicts.history.points import SERIES, natural
from harness.verdicts.history.steps import LEAST, NEW
from harness.verdicts.verdict import INCOMPARABLE

HEADINGS = (
    "change", "case", "stage", "before → after", "ratio", "points", "when", "commits",
    "what else changed there",
)  # fmt: skip

LEGEND = (
    "before → after: medians of the levels around the step; ratio above 1 is slower; points: how "
    "many each level rests on.",
    "when, commits: the first that is changed, and the range from the last that is not: the cause "
    "lies in it.",
)
_MEANINGS = {
    NEW: "new: one point shows it so far; the next night confirms it, or it is gone.",
    ENVIRONMENT: "environment: the program is the same, or the reference program's time changed as "
    "much: what runs it changed.",
    PROGRAM: "program: it changed, and no change of the time of compiling it shows.",
    INCOMPARABLE: "incomparable: the workload, the effort or the machine behind the name changed, "
    "so nothing is compared there.",
}

_PROGRAM = {True: "program equal", False: "program changed"}


def table(changes: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text, a row per change point of :func:`harness.history`."""
    rows = []
    for row, case in zip(rows_of(changes), titles(changes, COLUMNS), strict=True):
        before, after = row["commit_before"][:8] or "–", row["commit_after"][:8] or "–"
        same = row["commit_before"] == row["commit_after"]
        program = _PROGRAM.get(row["same_program"], "")
        inside = row["inside"] and f"inside of the compile: {row['inside']}"
        beside = (_evidence(row), row["cut"], program, inside, row["environment"], row["facts"])
        rows.append(
            [
                " ".join([row["change"], *([NEW] if row["state"] == NEW else [])]),
                case,
                row["stage"],
                f"{value_text(row['before_s'], row['unit'])} → "
                f"{value_text(row['after_s'], row['unit'])}",
                ratio_text(row["ratio"]),
                f"{row['n_before']} | {row['n_after']}",
                when_of(row),
                after if same else f"{before}..{after}",
                "; ".join(filter(None, beside)) or "nothing that is recorded",
            ]
        )
    return pd.DataFrame(rows, columns=list(HEADINGS), dtype="str")


def _evidence(row: Mapping[str, Any]) -> str:
    if row["evidence"] == REFERENCE:
        return "the reference program's time changed as much"
    if math.isnan(row["calls_before"]):
        return ""
    calls = calls_text(row["calls_before"], row["calls_after"])
    return f"proven by counts: {calls}" if row["evidence"] else f"though {calls}"


def legend(changes: pd.DataFrame) -> list[str]:
    """Return lines that say what the words of the table mean."""
    used = {*changes["change"], *changes["state"]}
    return [*LEGEND, *(text for word, text in _MEANINGS.items() if word in used)]


def seen_once(points: pd.DataFrame, changes: pd.DataFrame, night: str) -> pd.DataFrame:
    """Return a frame of text: series of two points that differ by what counts, the most first.

    Those whose intervals do not meet, where both are known, whose second is of `night` or later,
    and that have none of the `changes`. No change points: of two nights nobody knows how much
    nights differ.
    """
    measured = points[points["value"].notna() & ~points["series"].isin(changes["series"])]
    newest = measured.groupby("series")["piece"].transform("max")
    measured = measured[measured["piece"] == newest].sort_values(["series", "position"])
    two = measured[measured.groupby("series")["value"].transform("size") == 2]
    ends = zip(rows_of(two[::2]), rows_of(two[1::2]), titles(two[1::2], SERIES), strict=True)
    moved = []
    for before, after, case in ends:
        if natural(when_of(after)) < natural(night):
            continue
        low, high = sorted((before["value"], after["value"]))
        times = high / low if low > 0 else 1.0 if low == high else math.inf
        meet = before["low"] <= after["high"] and after["low"] <= before["high"]
        if times >= 1 + effect(after["stage"]) and not meet:
            levels = " → ".join(value_text(one["value"], one["unit"]) for one in (before, after))
            ratio = after["value"] / before["value"] if low > 0 else math.nan
            when = " → ".join(dict.fromkeys([when_of(before), when_of(after)]))
            row = case, after["stage"], levels, ratio_text(ratio), when
            moved.append((times, *row))
    rows = [row for _, *row in sorted(moved, reverse=True)]
    return pd.DataFrame(rows, columns=["case", "stage", "before → after", "ratio", "when"])


def too_short(points: pd.DataFrame) -> str:
    """Return in a sentence how many series cannot have a change of time yet; "" for none."""
    measured = points[points["value"].notna()]
    sizes = measured.groupby(["series", "piece"]).size()
    short = int((sizes < LEAST).sum())
    return (
        f"{short} of {len(sizes)} series have fewer than the {LEAST} points that a change of time "
        "needs."
        if short
        else ""
    )


def check_since(points: pd.DataFrame, night: str) -> None:
    """Refuse a `night` that stands in no order with those that there are: yesterday, for dates.

    Raises:
        UsageError: no night begins as it does, with a number or with the same letters; or it is a
            day that there is not.
    """
    if re.fullmatch(r"\d{4}-\d\d-\d\d", night):
        try:
            date.fromisoformat(night)
        except ValueError as error:
            raise UsageError(f"--since {night!r}: {error}.") from None

    def begin(name: str) -> str:
        return "" if name[0].isdecimal() else str(natural(name)[0][1])

    nights = sorted({when_of(row) for row in rows_of(points)} - {""}, key=natural)
    if nights and begin(night) not in map(begin, nights):
        raise UsageError(
            f"--since {night!r}: no night is called so. There are {nights[0]} to {nights[-1]}."
        )


def since(changes: pd.DataFrame, night: str) -> pd.DataFrame:
    """Return the change points first seen in `night` or later; all of them for ""."""
    if not night:
        return changes
    times = [natural(when_of(row)) >= natural(night) for row in rows_of(changes)]
    return changes[pd.Series(times, index=changes.index, dtype=bool)]


def when_of(row: Any) -> str:
    """Return the night of a point or change point, or else the day on which it was measured."""
    night = str(row.get("night_after", row.get("night", "")))
    return night or ("" if pd.isna(row["started_at"]) else f"{row['started_at']:%Y-%m-%d}")


def titles(rows: pd.DataFrame, columns: Collection[str]) -> list[str]:
    """Return the machine, workload and case of each row; what is none of `columns` is an axis.

    The environment is named where rows of one case and stage are of several.
    """
    axes = [name for name in rows.columns if name not in columns]
    whole = zip(rows["machine"], full_names(rows, axes, scenario=True), strict=True)
    texts = pd.Series([f"{machine}: {name}" for machine, name in whole], rows.index, dtype="str")
    place = pd.Series(map(place_text, rows_of(rows[PLACE])), rows.index, dtype="str")
    several = place.groupby([texts, rows["stage"]]).transform("nunique") > 1
    return texts.where(~several, texts + ", " + place).to_list()
