"""Rows from records: one per case and stage, over all processes that measured the case.

A tree may hold hundreds of thousands of records, so a record is reduced to one value per stage as
soon as it is read, and medians are taken for all groups of one size at once.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.frame.case_facts import CaseFacts, ComparisonView, sides
from harness.frame.frame import NO_MOMENT, STAGE_ORDER, Rows, objects, order_of, to_moment
from harness.frame.record_view import RecordView
from harness.frame.row_statistics import (
    FAILED,
    OK,
    REFUSED,
    SKIPPED,
    Groups,
    Remarks,
    Said,
    Tally,
)
from harness.records.comparison import Comparison
from harness.records.schema import Record, plain_axes
from harness.stages.registry import CASE_STAGES, calibrated_by, value_ns

_CASE_COLUMNS = (
    *("machine", "commit", "env", "python", "jax", "jaxlib"),
    *("workload", "version", "target", "transform", "scenario", "dirty"),
    *("precision", "night"),
)
"""Text that is the same in all records of a case."""

_STATUS = {"ok": OK, "refused": REFUSED, "skipped": SKIPPED}


class _Case:
    """Where a case stands, and which record speaks for each of its processes."""

    __slots__ = ("described", "number", "processes")

    def __init__(self, number: int) -> None:
        self.number = number
        self.described = False
        self.processes: dict[str, int] = {}


class Collector:
    """Takes the records of many files, and makes rows of those that count.

    Records and cases are numbered as they come; what is kept of them stands in flat arrays.
    """

    def __init__(self) -> None:
        self._cases: dict[str, _Case] = {}
        columns = (*_CASE_COLUMNS, "backend", "threads", "static")
        self._text: dict[str, list[str]] = {column: [] for column in columns}
        self._axes: list[dict[str, Any]] = []
        self._commit_date: list[int] = []
        self._effort: list[str] = []
        self._environment: list[str] = []
        self._environments: dict[bytes, str] = {b"": ""}
        self._fingerprint: list[str] = []
        self._entry_bytes: list[float] = []
        # One element per record.
        self._case_of = array("q")
        self._started = array("q")
        self._status = array("b")
        self._replaced: list[int] = []
        self._reasons: dict[int, str] = {}
        self._facts = CaseFacts()
        self._compared: list[tuple[int, ComparisonView | Comparison]] = []
        # Four elements per record and stage with samples: number of the record, number of the
        # stage, value, and the reference's value or NaN. One call of `extend` is what is cheap.
        self._values_ns = array("d")
        # Per record and stage: what was refused, or why there are no samples.
        self._remarks: list[tuple[int, int, dict[str, int], str]] = []
        self._stages = {stage: number for number, stage in enumerate(STAGE_ORDER)}

    def take(self, records: Iterable[RecordView | Record]) -> None:
        """Take the records of one file, in the order in which they were written."""
        cases = self._cases
        file_begins = len(self._case_of)
        for record in records:
            case = cases.get(record.key)
            if case is None:
                case = cases[record.key] = self._new_case()
            number = len(self._case_of)
            earlier = case.processes.get(record.replicate)
            if earlier is not None:
                # Within a file the order of lines decides, between files the clock.
                if earlier < file_begins and self._started[earlier] > record.started_at_ms:
                    continue
                self._replaced.append(earlier)
            # The few names of processes are shared by all cases.
            case.processes[sys.intern(record.replicate)] = number
            if not case.described:
                # A record that could not find its case has neither axes nor transform.
                case.described = bool(record.transform)
                self._describe(case.number, record)
            self._effort[case.number] = record.effort
            if record.fingerprint:
                self._fingerprint[case.number] = record.fingerprint
            if record.entry_bytes:
                self._entry_bytes[case.number] = record.entry_bytes
            self._case_of.append(case.number)
            self._started.append(record.started_at_ms)
            self._facts.take(case.number, record.facts)
            if record.comparison is not None:
                self._compared.append((number, record.comparison))
            status = _STATUS.get(record.status, FAILED)
            self._status.append(status)
            if status in (OK, REFUSED):
                self._measured(number, record)
            else:
                self._reasons[number] = sys.intern(record.reason)

    def _new_case(self) -> _Case:
        for column in self._text.values():
            column.append("")
        self._axes.append({})
        self._commit_date.append(NO_MOMENT)
        self._effort.append("")
        self._environment.append("")
        self._fingerprint.append("")
        self._entry_bytes.append(math.nan)
        return _Case(len(self._cases))

    def _describe(self, case: int, record: RecordView | Record) -> None:
        for column in _CASE_COLUMNS:
            self._text[column][case] = sys.intern(getattr(record, column))
        side = record.comparison
        self._text["backend"][case] = sys.intern(side.backend) if side else "xla"
        self._text["threads"][case] = sys.intern(side.threads) if side else ""
        self._text["static"][case] = sys.intern(", ".join(record.static))
        self._axes[case] = plain_axes(record.axes)
        self._commit_date[case] = to_moment(record.commit_date_ms)
        # The same few hundred bytes in thousands of cases: kept once.
        raw = bytes(record.environment)
        self._environment[case] = self._environments.setdefault(raw, raw.decode())

    def _measured(self, number: int, record: RecordView | Record) -> None:
        reference, stages = record.reference_ns, self._stages
        extend, nan = self._values_ns.extend, math.nan
        for stage, found in record.stages.items():
            code = stages.get(stage)
            if code is None:
                code = stages[stage] = len(stages)
            samples = found.samples_ns
            if samples:
                by = reference.get(calibrated_by(stage))
                extend((number, code, value_ns(stage, samples), by or nan))
            if found.refused or not samples:
                self._remarks.append((number, code, found.refused or {}, found.reason))

    def rows(self) -> Rows:
        """Return one row per case and stage, cases in the order of what tells them apart."""
        order = sorted(range(len(self._axes)), key=self._sort_key)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ranks = self._stage_ranks()
        width = len(ranks)

        kept = np.ones(len(self._case_of), bool)
        kept[self._replaced] = False
        cases = place[_numbers(self._case_of)]
        status = _numbers(self._status)
        tally = Tally(kept, cases, status, len(order))

        values = _numbers(self._values_ns).reshape(-1, 4)
        if self._replaced:
            values = values[kept[values[:, 0].astype(np.int64)]]
        records, stage_of = values[:, :2].T.astype(np.int64)
        groups = Groups(
            cases[records] * width + ranks[stage_of],
            values[:, 2] / 1e9,
            values[:, 2] / values[:, 3],
        )
        remarks = self._remarks_by_row(kept, cases, ranks)
        ids = np.union1d(groups.ids, np.fromiter(remarks, np.int64, len(remarks)))
        bare = np.setdiff1d(np.arange(len(order)), ids // width)
        stages = np.sort(ranks[[self._stages[stage] for stage in CASE_STAGES]])
        ids = np.union1d(ids, (bare[:, None] * width + stages).ravel())

        names = np.empty(width, object)
        names[ranks] = objects(self._stages)
        case = ids // width
        facts, notes = self._facts.columns(kept, place)
        compared, incomparable = sides(
            ((int(cases[record]), side) for record, side in self._compared if kept[record]),
            len(order),
        )
        for number, text in incomparable.items():
            notes[number] = "; ".join(filter(None, (notes.get(number, ""), text)))
        said = Said(tally, remarks, self._reasons_by_case(kept, cases), notes)
        statuses, reasons = said.of(ids, width, np.isin(ids, groups.ids))
        columns: dict[str, Any] = {
            column: objects(values[number] for number in order)[case]
            for column, values in {
                **self._text,
                "effort": self._effort,
                "environment": self._environment,
                "fingerprint": self._fingerprint,
            }.items()
        }
        columns |= {
            "entry_bytes": np.array(self._entry_bytes, float)[order][case],
            "commit_date": np.array(self._commit_date, np.int64)[order][case],
            "started_at": tally.latest(_numbers(self._started))[case],
            "stage": names[ids % width],
            "unit": objects(["seconds"])[np.zeros(len(ids), np.int64)],
            "status": statuses,
            "reason": reasons,
            **{name: objects(values)[case] for name, values in compared.items()},
            **{name: values[case] for name, values in facts.items()},
            **groups.columns(np.searchsorted(ids, groups.ids), len(ids)),
        }
        return Rows(columns, [self._axes[number] for number in order], case)

    def _sort_key(self, case: int) -> tuple[Any, ...]:
        text = self._text
        return (
            text["machine"][case],
            self._commit_date[case],
            text["commit"][case],
            text["env"][case],
            text["workload"][case],
            text["version"][case],
            text["target"][case],
            text["transform"][case],
            text["precision"][case],
            tuple(map(order_of, self._axes[case].values())),
            text["threads"][case],
            case,
        )

    def _stage_ranks(self) -> np.ndarray[Any, Any]:
        """Return the place of each stage: the known ones as they follow each other, then others."""
        known = len(STAGE_ORDER)
        others = sorted(list(self._stages)[known:])
        return np.array(
            [*range(known), *(known + others.index(stage) for stage in list(self._stages)[known:])]
        )

    def _remarks_by_row(
        self, kept: np.ndarray[Any, Any], cases: np.ndarray[Any, Any], ranks: np.ndarray[Any, Any]
    ) -> dict[int, Remarks]:
        found: dict[int, Remarks] = {}
        for record, stage, refused, reason in self._remarks:
            if kept[record]:
                row = int(cases[record]) * len(ranks) + int(ranks[stage])
                remarks = found.setdefault(row, Remarks(Counter(), Counter()))
                remarks.refused.update(refused)
                remarks.missing[reason] += not refused
        return found

    def _reasons_by_case(
        self, kept: np.ndarray[Any, Any], cases: np.ndarray[Any, Any]
    ) -> dict[int, Counter[str]]:
        """Return why processes have nothing of a case: failures where there are any, else skips."""
        failed: dict[int, Counter[str]] = {}
        skipped: dict[int, Counter[str]] = {}
        for record, reason in self._reasons.items():
            if kept[record]:
                where = failed if self._status[record] == FAILED else skipped
                where.setdefault(int(cases[record]), Counter())[reason] += 1
        return {**skipped, **failed}


def _numbers(values: array[Any]) -> np.ndarray[Any, Any]:
    """Return a view: pages touched for a copy cost more than what is done with it."""
    return np.frombuffer(values, dtype=values.typecode)
