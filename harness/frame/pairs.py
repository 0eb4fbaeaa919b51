"""Which row of one arm belongs to which row of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame.frame import INSTRUMENTS, PLACE, axis_columns, axis_text
from harness.program.facts import TOTALS

Row = Mapping[str, Any]
"""One row of the frame: names of columns to values."""

Pair = tuple[Row | None, Row | None]
"""A row of A and the row of B that belongs to it; None where an arm has none."""

CASE = ("workload", "target", "transform", "precision", "scenario", "stage")
"""Columns that, with the axes, tell the rows of a machine apart."""

NEEDED = (
    "machine", *CASE, "version", "value", "calibrated", "samples", "n_processes",
    "calibrated_samples", "status", "reason", "fingerprint", "effort", "environment",
    "started_at", "python", "jax", "jaxlib", "commit", "dirty", *PLACE, "night", "unit",
)  # fmt: skip
"""Columns of the rows of a pair, besides the facts of their programs and their axes."""

LABEL = "index"
"""What the label of a row in its frame is called in a row of a pair."""

_LATER = (
    "cpu_samples", "processes", "p90_samples", "protocol", "waiting_samples", "others_cores",
    "load_averages", "inputs", "code", "in_turns", "method", "entry_bytes",
)  # fmt: skip
"""Columns that are used where a frame has them."""

_Key = tuple[str, ...]

_HOW = frozenset({"env", "jax", "jaxlib", "python"})
"""Columns that the name of an environment is made of."""


DIGESTS = frozenset({"commit", "dirty"})
"""Columns of which the beginning of a value will do."""


@dataclass(frozen=True)
class Arm:
    """One side of a comparison."""

    text: str
    rows: pd.DataFrame
    where: Mapping[str, str] = field(default_factory=dict)
    """Columns that it selects on, and their values; none for a file or folder."""

    @property
    def label(self) -> str:
        """What it is, for a heading: `v1.2 (commit=0123abcd)`."""
        where = ", ".join(
            f"{name}={value[:8] if name in DIGESTS else value or 'none'}"
            for name, value in self.where.items()
        )
        if list(self.where.values()) == [self.text]:
            return where
        return self.text if where in ("", self.text) else f"{self.text} ({where})"


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
    left_out: Sequence[LeftOut]
    a: Arm
    b: Arm
    on: Sequence[str]
    """Columns in which the arms differ by intention, and rows of a pair need not agree."""


@dataclass(slots=True)
class _View(Mapping[str, Any]):
    """A row, read where it stands: copies of 100,000 rows take seconds."""

    _columns: Mapping[str, Sequence[Any]]
    _at: int

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def pair(a: Arm, b: Arm, on: Collection[str] | None = None) -> Pairs:
    """Return the rows of two arms that can be compared at all, each with what belongs to it.

    Like is compared with like: of the environments (:data:`harness.frame.frame.PLACE`) that both
    arms have of a case, the one that B measured last; other rows of the case are in `left_out`.
    Where they have none in common, and within one, the newest row of an arm counts: that of the
    newest commit, and of those of one commit, or without any, the one that was measured last. One
    without a date is older than any other. Pairs come in the order of `a`; what only `b` has
    follows.

    `on` are the columns in which the arms differ by intention. None means those that both select on
    with different values; and the machine, where files of one machine each are compared.
    """
    if on is None:
        on = [name for name, value in a.where.items() if b.where.get(name, value) != value]
        machines = [arm.rows["machine"].unique() for arm in (a, b)]
        single = not a.where and not b.where and len(machines[0]) == len(machines[1]) == 1
        on += ["machine"] if single and machines[0][0] != machines[1][0] else []
    for name, arm in (("A", a), ("B", b)):
        lacking = [one for one in (*NEEDED, "threads") if one not in arm.rows.columns]
        if lacking:
            raise UsageError(
                f"Arm {name} lacks the columns {', '.join(lacking)}: expected a frame such as "
                "harness.load returns."
            )
    arms = [comparable_rows(arm.rows) for arm in (a, b)]
    axes = [
        name
        for name in dict.fromkeys(axis for arm in arms for axis in axis_columns(arm))
        if any(name in arm.columns and arm[name].notna().any() for arm in arms)
    ]
    place = [name for name in PLACE if name not in on and (name != "env" or not _HOW & set(on))]
    of_a, of_b = (_newest_rows(arm, axes, on, place) for arm in arms)
    chosen: tuple[dict[_Key, Row], dict[_Key, Row]] = ({}, {})
    others: Counter[tuple[str, _Key]] = Counter()
    for key in dict.fromkeys((*of_a, *of_b)):
        sides = of_a.get(key, {}), of_b.get(key, {})
        both = [one for one in sides[1] if one in sides[0]]  # newest last
        for rows, own in zip(chosen, sides, strict=True):
            if own:
                rows[key] = own[both[-1]] if both else list(own.values())[-1]
        for one in dict.fromkeys((*sides[0], *sides[1])) if both else ():
            if one != both[-1]:
                others["both" if one in both else "A" if one in sides[0] else "B", one] += 1
    left_out = [
        LeftOut(which, {**dict.fromkeys(PLACE, ""), **dict(zip(place, one, strict=True))}, rows)
        for (which, one), rows in others.items()
    ]
    rows_a, rows_b = chosen
    if ((arms[1]["transform"] == "") & (arms[1]["status"] == "failed")).any():
        rows_b = _with_broken(rows_a, rows_b)
    pairs = [(rows_a.get(key), rows_b.get(key)) for key in dict.fromkeys((*rows_a, *rows_b))]
    return Pairs(pairs, axes, left_out, a, b, list(on))


def _with_broken(rows_a: Mapping[_Key, Row], rows_b: Mapping[_Key, Row]) -> dict[_Key, Row]:
    """Return B's rows, in which what broke as a whole stands for each row of it that A has."""
    broken = {(r["machine"], r["workload"]): r for r in rows_b.values() if is_broken(r)}
    standing, named = dict[_Key, Row](), set()
    for key, row in rows_a.items():
        name = row["workload"]
        while name and (row["machine"], name) not in broken:
            name = name.rpartition(".")[0]
        if name and key not in rows_b:
            standing[key] = broken[row["machine"], name]
            named.add((row["machine"], name))
    left = {
        key: row
        for key, row in rows_b.items()
        if not is_broken(row) or (row["machine"], row["workload"]) not in named
    }
    return {**left, **standing}


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
    measured = (frame["unit"] == "seconds") | (frame["scenario"] == "")
    own = (frame["threads"] == "") & ~frame["workload"].isin(INSTRUMENTS)
    return frame[own & measured]


def _newest_rows(
    frame: pd.DataFrame, axes: Sequence[str], on: Collection[str], place: Sequence[str]
) -> dict[_Key, dict[_Key, Row]]:
    """Return the newest row of each case and stage by environment, in the frame's order."""
    shared = [frame[name].to_list() for name in ("machine", *CASE) if name not in on]
    for axis in axes:
        if axis not in on:
            texts = [""] * len(frame)
            if axis in frame.columns:
                values = frame[axis].to_numpy(object)
                # Most workloads lack most axes.
                for position in frame[axis].notna().to_numpy().nonzero()[0].tolist():
                    texts[position] = axis_text(values[position])
            shared.append(texts)
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
    newest: dict[_Key, dict[_Key, int]] = {key: {} for key in keys}
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


def axes_of(row: Row, axes: Sequence[str]) -> dict[str, Any]:
    """Return the axes of a row of a pair, by column."""
    return {axis: row[axis] for axis in axes if axis in row}


def either(pair: Pair) -> Row:
    """Return the row of the arm that has one, A's where both have."""
    a, b = pair
    return a if a is not None else b if b is not None else {}
