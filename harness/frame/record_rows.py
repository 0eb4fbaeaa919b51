"""Rows from records: one per case and stage, over all processes that measured the case.

A tree may hold hundreds of thousands of records, so a record is reduced to one value per stage as
soon as it is read, and medians are taken for all rows of as many processes at once.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.frame import row_values
from harness.frame.code import PROGRAM_CHANGED, as_text, differences, other_code
from harness.frame.columns import objects
from harness.frame.frame import NO_MOMENT, Rows, order_of, stage_order, to_moment
from harness.frame.record_view import ComparisonView, RecordView, TotalsView
from harness.frame.row_values import WIDTH, elements
from harness.program.facts import BUILT, TOTALS
from harness.records.schema import FIRST_CALL, Comparison, Record, apart, plain_axes
from harness.sides.registry import REFERENCE
from harness.stages.registry import (
    ALONE_STAGES,
    CASE_STAGES,
    OWN_PROGRAM,
    STAGES,
    cpu_value_ns,
    used,
)
from harness.stages.stage import LOOP, median

_TEXT = (
    *("machine", "commit", "env", "python", "jax", "jaxlib"),
    *("workload", "version", "target", "transform", "scenario", "dirty"),
    *("precision", "night"),
)
"""Text that is the same in all records of a case."""

_MEASURED = ("ok", "refused")

_DESCRIBED = (*_TEXT, "backend", "threads", "static")

_Array = np.ndarray[Any, Any]


_Remark = tuple[int, dict[str, int], str]


class _Process(NamedTuple):
    """What a record says besides what is the same in all records of its case."""

    file: int
    started_at: int
    status: str
    reason: str
    values: array[float]
    """:func:`harness.frame.row_values.elements` of each stage with samples."""
    remarks: tuple[_Remark, ...]
    """Of stages: what was refused, or why there are no samples."""
    facts: TotalsView | None
    comparison: ComparisonView | Comparison | None
    forked: bool
    code: str
    """The JSON text of the code that it ran; empty where that is not recorded."""
    name: str
    """What tells it from other processes, the same in all records of it; "" in old ones."""
    cpu_ns: Mapping[int, float]
    """By number, stages of which it knows CPU time for the row that others measured."""


class _Case:
    """A case, and the record that speaks for each of its processes."""

    __slots__ = (
        *("apart", "axes", "commit_date", "described", "effort", "entry_bytes", "environment"),
        *("facts", "fingerprint", "fingerprint_of", "processes", "program_changed"),
        *("protocol", "text"),
    )

    def __init__(self) -> None:
        self.described = False
        self.apart = ""
        self.text: dict[str, str] = {}
        self.axes: dict[str, Any] = {}
        self.commit_date = NO_MOMENT
        self.effort = self.protocol = self.environment = self.fingerprint = ""
        self.fingerprint_of = ""
        """The JSON text of the code that it is the program of."""
        self.program_changed = False
        self.entry_bytes = math.nan
        self.facts: TotalsView | None = None
        self.processes: dict[str, _Process] = {}

    def order(self) -> tuple[Any, ...]:
        """Return what to sort cases by."""
        text = self.text
        return (
            *(text["machine"], self.commit_date),
            *(text[name] for name in ("commit", "env", "workload", "version", "target")),
            *(text["transform"], text["precision"]),
            tuple(map(order_of, self.axes.values())),
            text["threads"],
        )

    def leave_other_code_out(self) -> str:
        """Leave out processes that ran other code than the last one; return which, and why."""
        measured = {name: one for name, one in self.processes.items() if one.status in _MEASURED}
        if len({one.code for one in measured.values()}) < 2:
            return ""
        last = max(measured.values(), key=lambda one: (one.file, one.started_at))
        others, reason = other_code({name: one.code for name, one in measured.items()}, last.code)
        for name in others:
            del self.processes[name]
        return reason

    def reasons(self, status: str) -> list[str]:
        """Return why processes of the case came to `status`."""
        return [one.reason for one in self.processes.values() if one.status == status]


class Collector:
    """Takes the records of many files, and makes rows of those that count."""

    def __init__(self) -> None:
        self._files = 0
        self._cases: dict[str, _Case] = {}
        # The loop is what others are divided by, and no measure of itself.
        self._stages = {
            name: (number, stage.calibrated_by if name != LOOP else "", stage.statistic)
            for number, (name, stage) in enumerate(STAGES.items())
        }
        self._environments: dict[bytes, str] = {b"": ""}

    def take(self, records: Iterable[RecordView | Record]) -> None:
        """Take the records of one file, in the order in which they were written."""
        self._files += 1
        cases = self._cases
        for record in records:
            case = cases.get(record.key)
            if case is None:
                case = cases[record.key] = _Case()
            earlier = case.processes.get(record.replicate)
            if earlier is not None:
                # Within a file the order of lines decides, between files the clock.
                if earlier.file < self._files and earlier.started_at > record.started_at_ms:
                    continue
                del case.processes[record.replicate]
            if not case.described:
                self._describe(case, record)
            case.effort, case.protocol = record.effort, record.protocol
            if record.fingerprint and record.fingerprint != case.fingerprint:
                code = as_text(record.code)
                if case.fingerprint and code and not differences(code, case.fingerprint_of):
                    case.program_changed = True
                case.fingerprint, case.fingerprint_of = record.fingerprint, sys.intern(code)
            case.entry_bytes = record.entry_bytes or case.entry_bytes
            if record.facts is not None and record.facts != case.facts:
                case.facts = record.facts
            # The few names of processes are shared by all cases.
            case.processes[sys.intern(record.replicate)] = self._process(
                record, None if record.facts is None else case.facts
            )

    def _describe(self, case: _Case, record: RecordView | Record) -> None:
        # A record that could not find its case has neither axes nor transform.
        case.described = bool(record.transform)
        side = record.comparison
        case.apart = apart(record.protocol)
        text = [getattr(record, name) for name in _TEXT]
        text += (side.backend, side.threads) if side else (REFERENCE, "")
        text.append(", ".join(record.static))
        case.text = dict(zip(_DESCRIBED, map(sys.intern, text), strict=True))
        case.axes = plain_axes(record.axes)
        case.commit_date = to_moment(record.commit_date_ms)
        # The same few hundred bytes in thousands of cases: kept once.
        raw = bytes(record.environment)
        case.environment = self._environments.setdefault(raw, raw.decode())

    def _process(self, record: RecordView | Record, facts: TotalsView | None) -> _Process:
        status = record.status if record.status in (*_MEASURED, "skipped") else "failed"
        measured = status in _MEASURED
        numbers: list[float] = []
        remarks: tuple[_Remark, ...] = ()
        stages, reference = self._stages, record.reference_ns
        own = apart(record.protocol) in OWN_PROGRAM
        cpu_ns = dict[int, float]()
        old = record.protocol != FIRST_CALL and record.comparison is None
        for stage, taken in record.stages.items() if measured else ():
            if old and stage in ALONE_STAGES:
                stage = used(stage)
            known = stages.get(stage)
            if known is None:  # of another release of the harness
                known = stages[stage] = len(stages), "", median
            number, calibrated_by, statistic = known
            samples = taken.samples_ns
            if own and stage not in OWN_PROGRAM:
                if taken.cpu_ns:
                    cpu_ns[number] = cpu_value_ns(stage, taken.cpu_ns)
                continue
            if samples:
                by = reference.get(calibrated_by) or math.nan
                numbers += elements(number, statistic(samples), by, taken)
            if taken.refused or taken.reason or not samples:
                remarks += ((number, taken.refused or {}, taken.reason),)
        reason = "" if measured else sys.intern(record.reason)
        values, side = array("d", numbers), record.comparison
        started_at = record.started_at_ms
        code = sys.intern(as_text(record.code))
        about = values, remarks, facts, side, bool(record.parent), code, sys.intern(record.process)
        return _Process(self._files, started_at, status, reason, *about, cpu_ns)

    def rows(self) -> Rows:
        """Return one row per case and stage, cases in the order of what tells them apart."""
        counting = [
            one
            for one in self._cases.values()
            # A module that could not be imported, and can be again, has skipped processes alone.
            if one.described or any(p.status != "skipped" for p in one.processes.values())
        ]
        cases = sorted(counting, key=_Case.order)
        left_out = [one.leave_other_code_out() for one in cases]
        stages = sorted(self._stages, key=stage_order)
        width = len(stages)
        ranks = np.empty(width, np.int64)
        ranks[[self._stages[stage][0] for stage in stages]] = np.arange(width)

        processes = [one for case in cases for one in case.processes.values()]
        of = np.repeat(np.arange(len(cases)), [len(case.processes) for case in cases])
        flat = np.frombuffer(bytearray().join(one.values for one in processes)).reshape(-1, WIDTH)
        taken = [len(one.values) // WIDTH for one in processes]
        process_of = np.repeat(objects(one.name for one in processes), taken)
        row_of = np.repeat(of, taken) * width
        row_of += ranks[flat[:, 0].astype(np.int64)]
        remarks: dict[int, list[_Remark]] = {}
        for number, one in zip(of.tolist(), processes, strict=True):
            for remark in one.remarks:
                remarks.setdefault(number * width + int(ranks[remark[0]]), []).append(remark)

        ids = np.union1d(row_of, np.fromiter(remarks, np.int64, len(remarks)))
        bare = np.setdiff1d(np.arange(len(cases)), ids // width)
        usual = np.sort(ranks[[self._stages[stage][0] for stage in CASE_STAGES]])
        taken_apart = np.array([bool(one.apart) for one in cases], bool)[bare]
        ids = np.union1d(ids, (bare[~taken_apart, None] * width + usual).ravel())
        own = [ranks[self._stages[cases[number].apart][0]] for number in bare[taken_apart]]
        ids = np.union1d(ids, bare[taken_apart] * width + np.array(own, np.int64))
        case = ids // width
        taken_columns = row_values.statistics(row_of, flat, process_of, ids)
        for number, stage, names, values in _own_clock(cases):
            row = int(np.searchsorted(ids, number * width + ranks[stage]))
            if row < len(ids) and ids[row] == number * width + ranks[stage]:
                taken_columns["cpu_samples"][row] = values
                taken_columns["cpu_processes"][row] = names

        facts, notes = _facts(cases)
        comparisons = [_comparison(one) for one in cases]
        for number, ((_, _, incomparable), other) in enumerate(
            zip(comparisons, left_out, strict=True)
        ):
            changed = PROGRAM_CHANGED if cases[number].program_changed else ""
            if incomparable or other or changed:
                said = notes.get(number), incomparable, other, changed
                notes[number] = "; ".join(filter(None, said))
        columns = {
            **taken_columns,
            **{name: objects(one.text[name] for one in cases)[case] for name in _DESCRIBED},
            **{
                name: objects(getattr(one, name) for one in cases)[case]
                for name in ("effort", "protocol", "environment", "fingerprint")
            },
            "entry_bytes": np.array([one.entry_bytes for one in cases], float)[case],
            "n_forked": np.array(
                [sum(p.forked for p in one.processes.values()) for one in cases], float
            )[case],
            "commit_date": np.array([one.commit_date for one in cases], np.int64)[case],
            "started_at": np.array(
                [max(p.started_at for p in one.processes.values()) for one in cases], np.int64
            )[case],
            "stage": objects(stages)[ids % width],
            "unit": objects(["seconds"])[np.zeros(len(ids), np.int64)],
            "comparable": objects(one[0] for one in comparisons)[case],
            "labels": objects(one[1] for one in comparisons)[case],
            **{name: facts[:, number][case] for number, name in enumerate(TOTALS)},
        }
        outcomes = objects([("ok", "")])[np.zeros(len(ids), np.int64)]
        valued = columns["n_processes"] > 0
        failed = np.array([bool(one.reasons("failed")) for one in cases], bool)
        special = ~valued | failed[case]
        for known in (remarks, notes):
            numbers = np.fromiter(known, np.int64, len(known))
            special |= np.isin(ids if known is remarks else case, numbers)
        for row in np.flatnonzero(special).tolist():
            number = int(case[row])
            outcomes[row] = _outcome(
                cases[number], valued[row], remarks.get(int(ids[row]), []), notes.get(number, "")
            )
        columns["status"] = objects(status for status, _ in outcomes)
        columns["reason"] = objects(reason for _, reason in outcomes)
        return Rows(columns, [one.axes for one in cases], case)


def _own_clock(cases: Sequence[_Case]) -> Iterator[tuple[int, int, list[str], list[float]]]:
    """Yield what processes that take `compute` say of the stages of their cases.

    That is the number of the case that visits have, the stage's number, the processes, and the
    seconds of CPU time of each.
    """

    def known(case: _Case) -> tuple[str, ...]:
        return (*case.text.values(), repr(case.axes))

    visited = {known(case): number for number, case in enumerate(cases) if not case.apart}
    for case in cases:
        number = visited.get(known(case)) if case.apart in OWN_PROGRAM else None
        if number is None:
            continue
        taken = [one for one in case.processes.values() if one.cpu_ns]
        for stage in {stage for one in taken for stage in one.cpu_ns}:
            having = [one for one in taken if stage in one.cpu_ns]
            yield number, stage, [p.name for p in having], [p.cpu_ns[stage] / 1e9 for p in having]


def _outcome(case: _Case, valued: bool, remarks: list[_Remark], note: str) -> tuple[str, str]:
    """Return status and reason of a row; `remarks` are what processes say of its stage."""
    failed, skipped = case.reasons("failed"), case.reasons("skipped")
    count = len(case.processes)
    if len(failed) + len(skipped) == count:
        return ("failed", _commonest(failed)) if failed else ("skipped", _commonest(skipped))
    share = f"{len(failed)} of {count} processes failed: {_commonest(failed)}" if failed else ""
    reasons: Counter[str] = Counter()
    for _, counts, _ in remarks:
        reasons.update(counts)
    refused = ""
    if reasons:
        samples = f"{reasons.total()} sample{'' if reasons.total() == 1 else 's'}"
        refused = f"{samples} refused: {reasons.most_common(1)[0][0]}"
    if valued:
        said = [why for _, _, why in remarks if why]
        usual = _commonest(said) if 2 * len(said) > count else ""
        return "ok", "; ".join(filter(None, (share, refused, usual, note)))
    if refused:
        return "refused", "; ".join(filter(None, (refused, share)))
    missing = _commonest(why for _, counts, why in remarks if not counts) or "no samples"
    return "skipped", "; ".join(filter(None, (missing, share)))


def _commonest(reasons: Iterable[str]) -> str:
    return next((reason for reason, _ in Counter(reasons).most_common(1)), "")


def _facts(cases: list[_Case]) -> tuple[_Array, dict[int, str]]:
    """Return the facts of each case, and for some what their processes differ in.

    They are float64 (cases, facts), NaN where no process knows one or two contradict each other.
    Of Python's calls, which differ by a few, the least are taken.
    """
    table, notes = np.full((len(cases), len(TOTALS)), np.nan), {}
    for number, case in enumerate(cases):
        distinct = {id(one.facts): one.facts for one in case.processes.values() if one.facts}
        lists = [[getattr(facts, name) for name in TOTALS] for facts in distinct.values()]
        if len(lists) == 1:
            table[number] = lists[0]  # NumPy makes NaN of None
        elif lists:
            known = [
                {value for value in fact if value is not None} for fact in zip(*lists, strict=True)
            ]
            by_name = dict(zip(TOTALS, known, strict=True))
            differing = [name for name in BUILT if len(by_name[name]) > 1]
            table[number] = [
                np.nan if not one or name in differing else min(one)
                for name, one in by_name.items()
            ]
            if differing:
                notes[number] = "processes built different programs: they disagree on " + (
                    ", ".join(differing)
                )
    return table, notes


def _comparison(case: _Case) -> tuple[str, str, str]:
    """Return of a comparison `comparable`, `labels`, and why it has no ratio; else empty texts."""
    sides = [one.comparison for one in case.processes.values() if one.comparison is not None]
    if not sides:
        return "", "", ""
    labels = dict.fromkeys(label for side in sides for label in side.labels)
    reasons = dict.fromkeys(reason for side in sides for reason in side.reasons)
    comparable = "yes" if all(side.comparable for side in sides) else "no"
    why = f"not comparable: {'; '.join(reasons)}" if reasons else ""
    return comparable, "; ".join(labels), why
