"""Which row of one arm belongs to which row of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame.differences import ARROW, UNKNOWN, environment_difference
from harness.frame.frame import INSTRUMENTS, PLACE, axis_columns, axis_text, ordinary, place_text
from harness.program.facts import TOTALS
from harness.records.units import counted

Row = Mapping[str, Any]
"""One row of the frame: names of columns to values."""

Pair = tuple[Row | None, Row | None]
"""A row of A and the row of B that belongs to it; None where an arm has none."""

CASE = ("workload", "target", "transform", "precision", "scenario", "stage")
"""Columns that, with the axes, tell the rows of a machine apart."""

NEEDED = (
    *("machine", *CASE, "version", "value", "calibrated", "samples", "n_processes"),
    *("calibrated_samples", "status", "reason", "fingerprint", "effort", "environment"),
    *("started_at", "python", "jax", "jaxlib", "commit", "dirty", *PLACE, "night", "unit"),
)
"""Columns of the rows of a pair, besides the facts of their programs and their axes."""

LABEL = "index"
"""What the label of a row in its frame is called in a row of a pair."""

_LATER = (
    *("cpu_samples", "processes", "p90_samples", "protocol"),
    *("waiting_samples", "others_cores", "load_averages", "inputs", "code", "in_turns", "method"),
    "entry_bytes",
)
"""Columns that are used where a frame has them."""

_Rows = dict[tuple[str, ...], Row]

_ByPlace = dict[tuple[str, ...], dict[tuple[str, ...], Row]]
"""By case and stage, the rows of an arm by environment, newest last."""

_HOW = frozenset({"env", "jax", "jaxlib", "python"})
"""Columns that the name of an environment is made of."""


class LeftOut(NamedTuple):
    """Rows that are in no pair, because another environment of their case is."""

    arms: str
    """`both`, `A` or `B`: who has them."""
    place: Mapping[str, str]
    """Columns :data:`harness.frame.frame.PLACE` of them."""
    rows: int


class Pairs(NamedTuple):
    """Two arms, row by row."""

    pairs: Sequence[Pair]
    axes: Sequence[str]
    """The columns that hold axes."""
    left_out: Sequence[LeftOut] = ()


class _View(Mapping[str, Any]):
    """A row, read where it stands: copies of 100,000 rows take seconds."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Mapping[str, Sequence[Any]], at: int) -> None:
        self._columns = columns
        self._at = at

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def pair(a: pd.DataFrame, b: pd.DataFrame, on: Collection[str] = ()) -> Pairs:
    """Return the rows of two arms that can be compared at all, each with what belongs to it.

    Like is compared with like: of the environments (:data:`harness.frame.frame.PLACE`) that both
    arms have of a case, the one that B measured last; other rows of the case are in `left_out`.
    Where they have none in common, and within one, the newest row of an arm counts: that of the
    newest commit, and of those of one commit, or without any, the one that was measured last. One
    without a date is older than any other. Pairs come in the order of `a`; what only `b` has
    follows.

    Rows of a pair need not share the columns `on`, in which the arms differ by intention.
    """
    for name, frame in (("A", a), ("B", b)):
        lacking = [one for one in (*NEEDED, "threads") if one not in frame.columns]
        if lacking:
            raise UsageError(
                f"Arm {name} lacks the columns {', '.join(lacking)}: expected a frame such as "
                "harness.load returns."
            )
    arms = [comparable_rows(arm) for arm in (a, b)]
    axes = [
        name
        for name in dict.fromkeys(axis for arm in arms for axis in axis_columns(arm))
        if any(name in arm.columns and arm[name].notna().any() for arm in arms)
    ]
    place = [name for name in PLACE if name not in on and (name != "env" or not _HOW & set(on))]
    of_a, of_b = (_newest_rows(arm, axes, on, place) for arm in arms)
    rows_a, rows_b, left_out = _alike(of_a, of_b, place)
    rows_b = _with_broken(rows_a, rows_b)
    keys = dict.fromkeys((*rows_a, *rows_b))
    return Pairs([(rows_a.get(key), rows_b.get(key)) for key in keys], axes, left_out)


def _alike(a: _ByPlace, b: _ByPlace, place: Sequence[str]) -> tuple[_Rows, _Rows, list[LeftOut]]:
    """Return the row of each case and stage in both arms, in like environments where there are."""
    chosen: tuple[_Rows, _Rows] = ({}, {})
    others: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for key in dict.fromkeys((*a, *b)):
        of_a, of_b = a.get(key, {}), b.get(key, {})
        both = [one for one in of_b if one in of_a]  # newest last
        for rows, of in zip(chosen, (of_a, of_b), strict=True):
            if of:
                rows[key] = of[both[-1]] if both else list(of.values())[-1]
        for one in (*of_a, *(one for one in of_b if one not in of_a)) if both else ():
            if one != both[-1]:
                others["both" if one in both else "A" if one in of_a else "B", one] += 1
    return *chosen, [
        LeftOut(arms, {**dict.fromkeys(PLACE, ""), **dict(zip(place, one, strict=True))}, rows)
        for (arms, one), rows in others.items()
    ]


def _with_broken(rows_a: _Rows, rows_b: _Rows) -> _Rows:
    """Return B's rows, in which what broke as a whole stands for each row of it that A has."""
    broken = {(r["machine"], r["workload"]): r for r in rows_b.values() if is_broken(r)}
    if not broken:
        return rows_b
    found, told = dict[tuple[str, ...], Row](), set()
    for key, row in rows_a.items():
        name = row["workload"]
        while name and (row["machine"], name) not in broken:
            name = name.rpartition(".")[0]
        if name and key not in rows_b:
            found[key] = broken[row["machine"], name]
            told.add((row["machine"], name))
    left = {
        key: row
        for key, row in rows_b.items()
        if not is_broken(row) or (row["machine"], row["workload"]) not in told
    }
    return {**left, **found}


def took_turns(pair: Pair) -> bool:
    """Tell whether the processes of both sides took turns."""
    return all(row is not None and row.get("in_turns") is True for row in pair)


def is_broken(row: Row) -> bool:
    """Tell whether a row is of a module or workload that could not be used at all."""
    return not row["transform"] and row["status"] == "failed"


def comparable_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that can be compared at all.

    Left out are those of comparisons with baselines, of instruments, and what of a workload is not
    a time. Benchmarks that are no workloads, which have no scenario, are compared in any unit.
    """
    frame = ordinary(frame)
    measured = (frame["unit"] == "seconds") | (frame["scenario"] == "")
    return frame[~frame["workload"].isin(INSTRUMENTS) & measured]


def _newest_rows(
    frame: pd.DataFrame, axes: Sequence[str], on: Collection[str], place: Sequence[str]
) -> _ByPlace:
    """Return the newest row of each case, stage and environment, cases in the frame's order."""
    shared = [frame[name].to_list() for name in ("machine", *CASE) if name not in on]
    shared += [_axis_texts(frame, axis) for axis in axes if axis not in on]
    keys = list(zip(*shared, strict=True))
    started = dates = frame["started_at"]
    if "commit_date" in frame.columns:
        # The clocks of the machines that share a name may differ, what was committed does not.
        dates = frame["commit_date"].fillna(started)
    columns = {
        name: frame[name].to_list()
        for name in (*NEEDED, *_LATER, *TOTALS, *axes)
        if name in frame.columns
    }
    columns[LABEL] = frame.index.to_list()
    places = list(zip(*(frame[name].to_list() for name in place), strict=True)) or [()] * len(keys)
    newest: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {key: {} for key in keys}
    # NaT is the least number there is; of equal moments the last row counts.
    clock, date = (one.to_numpy("datetime64[ms]").view(np.int64) for one in (started, dates))
    for position in np.lexsort((clock, date)).tolist():
        own = newest[keys[position]]
        own.pop(places[position], None)
        own[places[position]] = position
    return {
        key: {one: _View(columns, position) for one, position in own.items()}
        for key, own in newest.items()
    }


def _axis_texts(frame: pd.DataFrame, axis: str) -> list[str]:
    texts = [""] * len(frame)
    if axis in frame.columns:
        values = frame[axis].to_numpy(object)
        # Most workloads lack most axes.
        for position in frame[axis].notna().to_numpy().nonzero()[0].tolist():
            texts[position] = axis_text(values[position])
    return texts


def axes_of(row: Row, axes: Sequence[str]) -> dict[str, Any]:
    """Return the axes of a row of a pair, by column."""
    return {axis: row[axis] for axis in axes if axis in row}


def either(pair: Pair) -> Row:
    """Return the row of the arm that has one, A's where both have."""
    a, b = pair
    return a if a is not None else b if b is not None else {}


def also_differs(pair: Pair, on: Collection[str] = ()) -> str:
    """Return what differs between the rows of a pair besides the columns in `on`, in words.

    That is the machine, commit and effort, and whatever of the environment is recorded; "" where
    an arm has no row, or nothing differs.
    """
    a, b = pair
    if a is None or b is None:
        return ""
    parts = [
        f"{name} {a[name][:12] or 'none'}{ARROW}{b[name][:12] or 'none'}"
        for name in ("machine", "commit", "effort")
        if name not in on and a[name] != b[name]
    ]
    environment = environment_difference(a["environment"], b["environment"], frozenset(on))
    return ", ".join([*parts, *([environment] if environment not in ("", UNKNOWN) else [])])


def left_out_lines(left_out: Sequence[LeftOut]) -> list[str]:
    """Return which environments are not compared, and how to choose one."""
    if not left_out:
        return []
    places: Counter[tuple[str, str]] = Counter()
    for one in left_out:
        places[place_text(one.place), one.arms] += one.rows
    texts = [
        f"{place} ({counted(rows, 'row')}, {'in' if arms == 'both' else 'only in'} {arms})"
        for (place, arms), rows in places.items()
    ]
    return [
        f"Left out, because another environment is compared: {', '.join(texts)}. An arm chooses: "
        "commit=1a2b3c4d,xla_flags=--xla_flag=1, or ...,env=NAME."
    ]


def environment_lines(frame: pd.DataFrame) -> list[str]:
    """Return what else differs between the arms of a comparison in most rows, by machine."""
    several = frame["machine"].nunique() > 1
    lines = []
    for machine, own in frame.groupby("machine", sort=False):
        texts = Counter(text for text in own["also_differs"] if text)
        for text, count in texts.most_common(1):
            where = f" on {machine}" if several else ""
            some = f" in {count} of {len(own)} rows" if len(texts) > 1 else ""
            lines.append(f"From A to B{where}{some}: {text}.")
    return lines
