"""Which pass of XLA's a compile became slower or faster in, by what `harness run --inside` took."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from harness.frame.arms import records_behind
from harness.frame.frame import rows_of
from harness.frame.pairs import Row
from harness.program.compiler.times import CompileTimes
from harness.records.schema import Record
from harness.verdicts.history.change_points import PROGRAM
from harness.verdicts.history.points import SERIES
from harness.verdicts.table import cases, ordered
from harness.verdicts.verdict import MOVED

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison

NAMED = 0.3
"""The share of its group's change that the pass must have which is named."""


class GroupChange(NamedTuple):
    """What one group of passes changed by."""

    group: str
    part: str
    a_s: float
    b_s: float
    share: float
    """B - A, as a share of A's whole compile."""
    name: str
    """The pass that changed most; "" where none stands out."""


class CompileChange(NamedTuple):
    """What became of one case's compile, in seconds of all threads."""

    workload: str
    case: str
    a_s: float
    b_s: float
    groups: list[GroupChange]
    """The largest change first."""


def changes(comparison: Comparison, records: Sequence[Iterable[Record]]) -> list[CompileChange]:
    """Return what is inside of the compiles that became slower or faster, in the order of rows.

    `records` of each arm are read only where such a row is.
    """
    frame = ordered(comparison.frame)
    moved = frame["verdict"].isin(MOVED) | frame["stage_verdict"].isin(MOVED)
    frame = frame[(frame["stage"] == "compile") & moved & frame["ratio"].notna()]
    if frame.empty:
        return []
    pairs = [comparison.pairs.pairs[number] for number in frame.index]
    titles = zip((row["workload"] for row in rows_of(frame)), cases(frame), strict=True)
    measured = [
        records_behind([pair[side] for pair in pairs], of_arm, comparison.pairs.axes)
        for side, of_arm in enumerate(records)
    ]
    return [*filter(None, itertools.starmap(_change, zip(titles, *measured, strict=True)))]


def of_steps(
    steps: pd.DataFrame, points: pd.DataFrame, records: Iterable[Record]
) -> dict[Any, CompileChange]:
    """Return what changed inside of the compile, by change point's label, where it is known.

    `records` of the tree are read only where a compile changed.
    """
    compiled = steps[(steps["stage"] == "compile") & steps["change"].isin((*MOVED, PROGRAM))]
    if compiled.empty:
        return {}
    axes = [name for name in points.columns if name not in SERIES]
    measured = points[points["value"].notna()]
    by_series = dict(list(measured.groupby("series")))
    ends: list[Row] = []
    for row in rows_of(compiled):
        own = by_series[row["series"]]
        earlier = own[own["position"] < row["position"]]
        at = (earlier["night"] == row["night_before"]) & (earlier["commit"] == row["commit_before"])
        after = own[own["position"] == row["position"]]
        ends += [rows_of(earlier[at])[-1], rows_of(after)[0]]
    records_of = records_behind(ends, records, axes)
    changed = (
        _change(("", ""), *pair) for pair in zip(records_of[::2], records_of[1::2], strict=True)
    )
    return {at: one for at, one in zip(compiled.index, changed, strict=True) if one}


def _times(records: Iterable[Record]) -> CompileTimes | None:
    """Return the inside of a case's compile, of its last process that has it."""
    measured = [one for one in records if one.compile_times and one.compile_times.threads_s]
    last = max(measured, key=lambda one: one.started_at_ms, default=None)
    return last.compile_times if last else None


def _change(
    title: tuple[str, str], of_a: Sequence[Record], of_b: Sequence[Record]
) -> CompileChange | None:
    """Return what changed from the records of a row to those of another; None if not known."""
    a, b = _times(of_a), _times(of_b)
    if not a or not b:
        return None
    before, after = (
        {(one.group, one.part, one.name): one.threads_s for one in (*times.groups, *times.passes)}
        for times in (a, b)
    )  # the name of a whole group is ""
    changed = {key: after.get(key, 0.0) - before.get(key, 0.0) for key in {**before, **after}}
    groups = []
    for (group, part, name), change in changed.items():
        if name:
            continue
        shares = {
            key[2]: one / change
            for key, one in changed.items()
            if change and key[2] and key[:2] == (group, part)
        }
        most = max(shares, key=shares.__getitem__, default="")
        a_s, b_s = (one.get((group, part, ""), 0.0) for one in (before, after))
        named = most if most and shares[most] >= NAMED else ""
        groups.append(GroupChange(group, part, a_s, b_s, change / a.threads_s, named))
    groups.sort(key=lambda one: -abs(one.share))
    return CompileChange(*title, a.threads_s, b.threads_s, groups)
