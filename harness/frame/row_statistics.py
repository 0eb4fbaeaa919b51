"""What many records come to: a row's value, interval, status and reason.

Medians and intervals are taken for all groups of one size at once, because a tree may hold
hundreds of thousands of rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from harness.frame.frame import NO_MOMENT, objects
from harness.stages.sampling import median_interval_ranks

OK, REFUSED, SKIPPED, FAILED = range(4)


class Remarks(NamedTuple):
    """What the processes of a case say about one stage, with how often."""

    refused: Counter[str]
    missing: Counter[str]


def _most_common(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else ""


class Tally:
    """How many processes of each case came to what."""

    def __init__(
        self,
        kept: np.ndarray[Any, Any],
        cases: np.ndarray[Any, Any],
        status: np.ndarray[Any, Any],
        n_cases: int,
    ) -> None:
        self._kept, self._cases, self._n_cases = kept, cases, n_cases
        self.processes = np.bincount(cases[kept], minlength=n_cases)
        self.ok, self.refused, self.skipped, self.failed = (
            np.bincount(cases[kept & (status == code)], minlength=n_cases)
            for code in (OK, REFUSED, SKIPPED, FAILED)
        )

    def latest(self, started: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return when the last process of each case began."""
        latest = np.full(self._n_cases, NO_MOMENT)
        np.maximum.at(latest, self._cases[self._kept], started[self._kept])
        return latest


class Said(NamedTuple):
    """What is known of rows besides their numbers."""

    tally: Tally
    remarks: dict[int, Remarks]
    reasons: dict[int, Counter[str]]
    notes: dict[int, str]
    """What a reader must know of a case that is plainly ok otherwise."""

    def of(
        self, ids: np.ndarray[Any, Any], width: int, valued: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the status and the reason of rows; most are plainly ok and cost nothing."""
        case = ids // width
        statuses = objects(["ok"])[np.zeros(len(ids), np.int64)]
        reasons = objects([""])[np.zeros(len(ids), np.int64)]
        special = ~valued | (self.tally.failed[case] > 0)
        special |= np.isin(ids, np.fromiter(self.remarks, np.int64, len(self.remarks)))
        special |= np.isin(case, np.fromiter(self.notes, np.int64, len(self.notes)))
        for row in np.flatnonzero(special).tolist():
            statuses[row], reasons[row] = self._one(int(ids[row]), int(case[row]), valued[row])
        return statuses, reasons

    def _one(self, row: int, case: int, valued: bool) -> tuple[str, str]:
        tally = self.tally
        failed = int(tally.failed[case])
        why = _most_common(self.reasons.get(case, Counter()))
        if not (tally.ok[case] or tally.refused[case]):
            return ("failed" if failed else "skipped"), why
        share = f"{failed} of {tally.processes[case]} processes failed: {why}" if failed else ""
        remarks = self.remarks.get(row, Remarks(Counter(), Counter()))
        refused = ""
        if remarks.refused:
            count = remarks.refused.total()
            plural = "" if count == 1 else "s"
            refused = f"{count} sample{plural} refused: {_most_common(remarks.refused)}"
        if valued:
            return "ok", "; ".join(filter(None, (share, refused, self.notes.get(case, ""))))
        if refused:
            return "refused", "; ".join(filter(None, (refused, share)))
        missing = _most_common(remarks.missing) or "no samples"
        return "skipped", "; ".join(filter(None, (missing, share)))


class Groups:
    """Values grouped by row, and their statistics, for all groups of one size at once."""

    def __init__(
        self,
        row_of: np.ndarray[Any, Any],
        value: np.ndarray[Any, Any],
        calibrated: np.ndarray[Any, Any],
    ) -> None:
        order = np.argsort(row_of, kind="stable")
        self._value, self._calibrated = value[order], calibrated[order]
        self.ids, self._starts, self._sizes = np.unique(
            row_of[order], return_index=True, return_counts=True
        )

    def columns(self, rows: np.ndarray[Any, Any], n_rows: int) -> dict[str, Any]:
        """Return the columns made of values; row `rows[i]` is that of the i-th group."""
        numbers = {name: np.full(n_rows, np.nan) for name in ("value", "calibrated", "low", "high")}
        sizes = np.zeros(n_rows, np.int64)
        sizes[rows] = self._sizes
        lists = {name: np.empty(n_rows, object) for name in ("samples", "calibrated_samples")}
        for found in lists.values():
            bare = np.flatnonzero(sizes == 0)
            found[bare] = objects([] for _ in bare)
        for size in np.unique(self._sizes).tolist():
            chosen = self._sizes == size
            at = rows[chosen]
            members = self._starts[chosen][:, None] + np.arange(size)
            values, calibrated = self._value[members], self._calibrated[members]
            ordered = np.sort(values, axis=1)
            numbers["value"][at] = median_of_sorted(ordered)
            numbers["calibrated"][at] = median_of_sorted(np.sort(calibrated, axis=1))
            ranks = median_interval_ranks(size)
            if ranks is not None:
                numbers["low"][at] = ordered[:, ranks[0]]
                numbers["high"][at] = ordered[:, ranks[1]]
            lists["samples"][at] = objects(values.tolist())
            lists["calibrated_samples"][at] = objects(calibrated.tolist())
        return {**numbers, "n_processes": sizes, **lists}


def median_of_sorted(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the median of each row of (rows, n) sorted values, leaving out NaN, which sorts last.

    NaN for a row of nothing but NaN.
    """
    n = np.count_nonzero(~np.isnan(values), axis=1)
    rows = np.arange(len(values))
    low = values[rows, np.maximum(n - 1, 0) // 2]
    high = values[rows, n // 2]
    middle: np.ndarray[Any, Any] = (low + high) / 2
    return middle
