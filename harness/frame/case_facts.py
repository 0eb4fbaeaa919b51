"""What the records of each case say besides times: facts of the program, sides of a comparison."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from harness.program.facts import TOTALS

if TYPE_CHECKING:
    from harness.program.facts import Facts


class ComparisonView(msgspec.Struct, gc=False):
    """The fields of :class:`harness.records.comparison.Comparison` that a row needs."""

    backend: str
    threads: str
    comparable: bool = False
    reasons: list[str] = []
    labels: list[str] = []


class ComparisonLike(Protocol):
    """A :class:`harness.records.comparison.Comparison`, or a view of one."""

    backend: str
    threads: str
    comparable: bool
    reasons: list[str]
    labels: list[str]


if TYPE_CHECKING:
    TotalsView = Facts
else:
    # Of the many facts a row needs only those that are one number.
    TotalsView = msgspec.defstruct(
        "TotalsView", [(name, float | None, None) for name in TOTALS], gc=False
    )


class CaseFacts:
    """The facts of cases, as their processes found them; most processes of a case agree."""

    def __init__(self) -> None:
        self._distinct: list[Any] = []
        self._owners: list[int] = []
        self._latest: dict[int, int] = {}
        # One element per record: which of the distinct facts it holds, or -1.
        self._of = array("q")

    def take(self, case: int, facts: Any) -> None:
        """Take the facts of the next record, None if it has none."""
        if facts is None:
            self._of.append(-1)
            return
        number = self._latest.get(case)
        if number is None or self._distinct[number] != facts:
            number = self._latest[case] = len(self._distinct)
            self._distinct.append(facts)
            self._owners.append(case)
        self._of.append(number)

    def columns(
        self, kept: np.ndarray[Any, Any], place: np.ndarray[Any, Any]
    ) -> tuple[dict[str, np.ndarray[Any, Any]], dict[int, str]]:
        """Return a column of each fact, by case, and for each case what its processes differ in.

        Args:
            kept: which records count, bool (records,).
            place: where each case stands, (cases,).

        Returns:
            Columns float64 (cases,), NaN where no process knows the fact or two contradict each
            other; and a text for each case in which some do.
        """
        table = np.full((len(place), len(TOTALS)), np.nan)
        of = np.frombuffer(self._of, dtype=self._of.typecode)
        used = np.zeros(len(self._distinct), bool)
        used[of[kept & (of >= 0)]] = True
        several: dict[int, list[list[Any]]] = {}
        counts = np.bincount(np.asarray(self._owners, np.int64)[used], minlength=len(place))
        for number in np.flatnonzero(used).tolist():
            owner = self._owners[number]
            values = [getattr(self._distinct[number], name) for name in TOTALS]
            if counts[owner] == 1:
                table[place[owner]] = values  # NumPy makes NaN of None
            else:
                several.setdefault(owner, []).append(values)
        said = {}
        for owner, lists in several.items():
            row, differing = _agreed(lists)
            table[place[owner]] = row
            if differing:
                said[int(place[owner])] = (
                    "processes built different programs: they disagree on " + (", ".join(differing))
                )
        return {name: table[:, number] for number, name in enumerate(TOTALS)}, said


def _agreed(lists: Iterable[list[Any]]) -> tuple[list[float], list[str]]:
    row, differing = [], []
    for name, values in zip(TOTALS, zip(*lists, strict=True), strict=True):
        known = {value for value in values if value is not None}
        row.append(known.pop() if len(known) == 1 else np.nan)
        if known:
            differing.append(name)
    return row, differing


def sides(
    compared: Iterable[tuple[int, ComparisonLike]], n_cases: int
) -> tuple[dict[str, list[str]], dict[int, str]]:
    """Return columns of text about comparisons, by case, and why cases are not comparable.

    Args:
        compared: the case of each record that belongs to a comparison, and the comparison.
        n_cases: how many cases there are.
    """
    comparable, labels = [""] * n_cases, [""] * n_cases
    label_sets: dict[int, dict[str, None]] = {}
    reasons: dict[int, Counter[str]] = {}
    for case, comparison in compared:
        comparable[case] = "yes" if comparison.comparable and comparable[case] != "no" else "no"
        label_sets.setdefault(case, {}).update(dict.fromkeys(comparison.labels))
        reasons.setdefault(case, Counter()).update(comparison.reasons)
    for case, found in label_sets.items():
        labels[case] = "; ".join(found)
    said = {case: "not comparable: " + "; ".join(found) for case, found in reasons.items() if found}
    return {"comparable": comparable, "labels": labels}, said
