"""The table of process values, a row per process, case and stage; and the frame made of it.

A tree may hold hundreds of thousands of records, so a record becomes numbers as soon as it is read.
Processes of a case that ran other code than its last one are never pooled.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from harness.baselines.registry import REFERENCE
from harness.frame.columns import LISTS, NO_MOMENT, objects, order_of, to_moment
from harness.frame.frame import FLAGS, Array, flags_of, stage_order, to_frame
from harness.program.facts import BUILT, TOTALS, Facts
from harness.records.schema import FIRST_CALL, Comparison, Record, StageSamples, digest, plain_axes
from harness.stages.registry import ALONE_STAGES, CASE_STAGES, STAGES, stage_of, used
from harness.stages.registry import reason as reason_of
from harness.stages.sampling import LEVEL, median_interval_ranks
from harness.stages.stage import LOOP, Stage, median
from harness.workload.code import conflicts

_TEXT = (
    "machine", "commit", "env", "python", "jax", "jaxlib",
    "workload", "version", "target", "transform", "scenario", "dirty",
    "precision", "night",
)  # fmt: skip
"""Text that is the same in all records of a case."""

_DESCRIBED = (*_TEXT, "backend", "threads", "static")

_MEASURED = ("ok", "refused")

NOT_RECORDED = "one did not record what it ran"

PROGRAM_CHANGED = (
    "the program changed though no code did: an environment variable or data file that is not in "
    "depends_on?"
)

_CALLS = ("least_ns", "p10_ns", "p50_ns", "p90_ns", "calls")
_PASSES = ("programs", "programs_ns", "collected_ns")
_COLUMNS = {
    "least": "least_ns", "p10": "p10_ns", "p50": "p50_ns", "p90": "p90_ns",
    "programs": "programs", "programs_s": "programs_ns", "collected_s": "collected_ns",
    "method": "method",
}  # fmt: skip
"""Columns of the frame that have the median over processes of a column of the table."""

AT_ONCE = 500
"""So many rows become columns together: until then their samples are in the processor's cache."""

_Block = dict[str, Array]
"""Rows of the table by column, times in nanoseconds; a column that is NaN throughout is absent."""


class _Remark(NamedTuple):
    """What a process says of a stage: how many samples were refused and why, or why it has none."""

    stage: int
    refused: Mapping[str, int]
    reason: str


class _Process(NamedTuple):
    """What a record says besides what is the same in all records of its case."""

    number: int
    file: int
    started_at: int
    status: str
    reason: str
    remarks: Sequence[_Remark]
    facts: Facts | None
    comparison: Comparison | None
    forked: bool
    code: str
    """The JSON text of the code that it ran; empty where that is not recorded."""
    name: str
    """What tells it from other processes, the same in all records of it; "" in old ones."""
    others_cores: float
    load_average: float


@dataclass(slots=True)
class _Case:
    """A case, and the record that speaks for each of its processes."""

    described: bool = False
    alone: bool = False
    """Its processes make a first call, and nothing else."""
    text: dict[str, str] = field(default_factory=dict)
    axes: dict[str, Any] = field(default_factory=dict)
    commit_date: int = NO_MOMENT
    effort: str = ""
    protocol: str = ""
    environment: str = ""
    fingerprint: str = ""
    fingerprint_of: str = ""
    """The JSON text of the code that it is the program of."""
    program_changed: bool = False
    inputs: str = ""
    entry_bytes: float = math.nan
    facts: Facts | None = None
    processes: dict[str, _Process] = field(default_factory=dict)

    def describe(self, record: Record) -> None:
        # A record that could not find its case has neither axes nor transform.
        self.described = bool(record.transform)
        self.alone = record.protocol.startswith(FIRST_CALL)
        side = record.comparison
        text = [getattr(record, name) for name in _TEXT]
        text += (side.backend, side.threads) if side else (REFERENCE, "")
        text.append(", ".join(record.static))
        self.text = dict(zip(_DESCRIBED, map(sys.intern, text), strict=True))
        self.axes = plain_axes(record.axes)
        self.commit_date = to_moment(record.commit_date_ms)
        # The same few hundred bytes in thousands of cases: stored once.
        self.environment = sys.intern(bytes(record.environment).decode())

    def order(self) -> tuple[Any, ...]:
        """Return what to sort cases by."""
        text = self.text
        return (
            text["machine"], self.commit_date,
            *(text[name] for name in ("commit", "env", "workload", "version", "target")),
            text["transform"], text["precision"],
            tuple(map(order_of, self.axes.values())),
            text["threads"],
        )  # fmt: skip

    def counts(self) -> bool:
        """Tell whether it has rows; a module that can be imported again skipped processes alone."""
        return self.described or any(p.status != "skipped" for p in self.processes.values())

    def leave_other_code_out(self) -> str:
        """Leave out processes that ran other code than the last one; say which, and why."""
        ran = {name: p for name, p in self.processes.items() if p.code or p.status in _MEASURED}
        if len({one.code for one in ran.values()}) < 2:
            return ""
        last = max(ran.values(), key=lambda one: (one.file, one.started_at))
        differing = {name: _differences(one.code, last.code) for name, one in ran.items()}
        others = [name for name, what in differing.items() if what]
        for name in others:
            del self.processes[name]
        names = dict.fromkeys(one for what in differing.values() for one in what)
        text = "processes ran other code and are left out"
        return f"{len(others)} of {len(ran)} {text}: {', '.join(names)}" if others else ""

    def ran(self) -> str:
        """Return a digest of all code that its processes ran; "" where one did not record it."""
        ran = {one.code for one in self.processes.values() if one.status in _MEASURED}
        return "" if not ran or "" in ran else _digest(frozenset(ran))

    def reasons(self, status: str) -> list[str]:
        """Return why processes of the case came to `status`."""
        return [one.reason for one in self.processes.values() if one.status == status]

    def agreed_facts(self) -> tuple[list[float | None], str]:
        """Return its :data:`TOTALS`, and what its processes disagree on.

        None is what no process knows, or two contradict each other in. Of Python's calls, which
        differ by a few, the least are taken.
        """
        distinct = {id(one.facts): one.facts for one in self.processes.values() if one.facts}
        lists = [[getattr(facts, name) for name in TOTALS] for facts in distinct.values()]
        if len(lists) < 2:
            return (lists or [[None] * len(TOTALS)])[0], ""
        columns = [{one for one in fact if one is not None} for fact in zip(*lists, strict=True)]
        by_name = dict(zip(TOTALS, columns, strict=True))
        differing = [name for name in BUILT if len(by_name[name]) > 1]
        agreed = [
            None if not one or name in differing else min(one) for name, one in by_name.items()
        ]
        text = "processes built different programs: they disagree on " + ", ".join(differing)
        return agreed, text if differing else ""

    def compared(self) -> tuple[str, str, str]:
        """Return of a comparison `comparable`, `labels` and why it has no ratio; else "" each."""
        sides = [one.comparison for one in self.processes.values() if one.comparison is not None]
        if not sides:
            return "", "", ""
        labels = dict.fromkeys(label for side in sides for label in side.labels)
        reasons = dict.fromkeys(reason for side in sides for reason in side.reasons)
        comparable = "yes" if all(side.comparable for side in sides) else "no"
        why = f"not comparable: {'; '.join(reasons)}" if reasons else ""
        return comparable, "; ".join(labels), why

    def outcome(self, valued: int, remarks: list[_Remark], note: str) -> tuple[str, str]:
        """Return status and reason of a row of which `valued` processes have values.

        `remarks` are what processes say of its stage.
        """
        failed, skipped = self.reasons("failed"), self.reasons("skipped")
        count = len(self.processes)
        if len(failed) + len(skipped) == count and not valued:
            return ("failed", _commonest(failed)) if failed else ("skipped", _commonest(skipped))
        some = failed and valued < count  # the others failed later, and have a value of this stage
        share = f"{len(failed)} of {count} processes failed: {_commonest(failed)}" if some else ""
        reasons: Counter[str] = Counter()
        for one in remarks:
            reasons.update(one.refused)
        refused = ""
        if reasons:
            samples = f"{reasons.total()} sample{'' if reasons.total() == 1 else 's'}"
            refused = f"{samples} refused: {reasons.most_common(1)[0][0]}"
        if valued:
            why = [one.reason for one in remarks if one.reason]
            usual = _commonest(why) if 2 * len(why) > count else ""
            if usual and valued + len(why) <= count:
                usual = f"{len(why)} of {count} processes have no value: {usual}"
            return "ok", "; ".join(filter(None, (share, refused, usual, note)))
        if refused:
            return "refused", "; ".join(filter(None, (refused, share)))
        missing = _commonest(one.reason for one in remarks if not one.refused) or "no samples"
        return "skipped", "; ".join(filter(None, (missing, share)))


def _commonest(reasons: Iterable[str]) -> str:
    return next((reason for reason, _ in Counter(reasons).most_common(1)), "")


@functools.cache
def _differences(ran: str, last: str) -> tuple[str, ...]:
    """Return what two texts of code differ in."""
    if not ran or not last:
        return () if ran == last else (NOT_RECORDED,)
    return tuple(conflicts(msgspec.json.decode(ran), msgspec.json.decode(last)))


@functools.cache
def _digest(codes: frozenset[str]) -> str:
    entries = {entry for text in codes for entry in msgspec.json.decode(text).items()}
    return digest(*sorted(entries))


def _text_of(code: Mapping[str, str]) -> str:
    """Return the code of a record as JSON text, stored once; "" if not recorded."""
    return sys.intern(msgspec.json.encode(code).decode()) if code else ""


class ProcessTable:
    """A row per process, case and stage, of the records of many files."""

    def __init__(self) -> None:
        self._files = self._processes = 0
        self._cases: dict[str, _Case] = {}
        self._stages: dict[str, tuple[int, str, Stage]] = {}
        """By name: its number, what it is divided by, and what is known of it."""
        self._blocks: list[_Block] = []
        """All rows, in parts; those of records that others replaced among them."""
        for name in STAGES:
            self._stage(name)

    def _stage(self, name: str) -> tuple[int, str, Stage]:
        # The loop is what others are divided by, and no measure of itself.
        by = STAGES[name].calibrated_by if name in STAGES and name != LOOP else ""
        return self._stages.setdefault(name, (len(self._stages), by, stage_of(name)))

    def take(self, records: Iterable[Record]) -> None:
        """Take the records of one file, in the order in which they were written."""
        self._files += 1
        cases, rows = self._cases, list[_Taken]()
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
                case.describe(record)
            case.effort, case.protocol = record.effort, record.protocol
            code = _text_of(record.code)
            if record.fingerprint and record.fingerprint != case.fingerprint:
                if case.fingerprint and code and not _differences(code, case.fingerprint_of):
                    case.program_changed = True
                case.fingerprint, case.fingerprint_of = record.fingerprint, code
            case.inputs = record.inputs or case.inputs
            case.entry_bytes = record.entry_bytes or case.entry_bytes
            if record.facts is not None and record.facts != case.facts:
                case.facts = record.facts
            status = record.status if record.status in (*_MEASURED, "skipped") else "failed"
            case.processes[sys.intern(record.replicate)] = _Process(
                number=self._processes,
                file=self._files,
                started_at=record.started_at_ms,
                status=status,
                reason="" if status in _MEASURED else sys.intern(record.reason),
                remarks=self._take_stages(record, rows),
                facts=record.facts and case.facts,
                comparison=record.comparison,
                forked=bool(record.parent),
                code=code,
                name=sys.intern(record.process),
                others_cores=math.nan if record.others_cores is None else record.others_cores,
                load_average=record.load_average[0] if record.load_average else math.nan,
            )
            self._processes += 1
            if len(rows) >= AT_ONCE:
                self._blocks.append(_block(rows))
                rows.clear()

        if rows:
            self._blocks.append(_block(rows))

    def _take_stages(self, record: Record, rows: list[_Taken]) -> Sequence[_Remark]:
        """Add the rows of a process, and return what it says of its stages."""
        remarks = []
        # Taken in a process that had built the program before: another stage.
        old = record.protocol != FIRST_CALL and record.comparison is None
        for name, taken in record.stages.items():
            if old and name in ALONE_STAGES:
                name = used(name)
            number, by, stage = self._stages.get(name) or self._stage(name)
            if taken.samples_ns:
                by_ns = record.reference_ns.get(by) or math.nan
                rows.append((self._processes, number, by_ns, stage, taken))
            if taken.refused or taken.reason or not taken.samples_ns:
                remarks.append(_Remark(number, taken.refused, reason_of(taken)))
        return remarks or ()

    def _column(self, name: str) -> Array:
        """Return a column of the table; empty where it is NaN throughout."""
        if not any(name in block for block in self._blocks):
            return np.zeros(0)
        return np.concatenate(
            [
                block[name] if name in block else np.full(len(block["stage"]), math.nan)
                for block in self._blocks
            ]
        )

    def frame(self) -> pd.DataFrame:
        """Return one row per case and stage, cases in the order of what tells them apart."""
        cases = sorted(filter(_Case.counts, self._cases.values()), key=_Case.order)
        left_out = [one.leave_other_code_out() for one in cases]
        stages = sorted(self._stages, key=stage_order)
        width = len(stages)
        place = np.empty(width, np.int64)
        place[[self._stages[stage][0] for stage in stages]] = np.arange(width)
        members = [(n, one) for n, case in enumerate(cases) for one in case.processes.values()]
        remarks: dict[int, list[_Remark]] = {}
        for n, one in members:
            for remark in one.remarks:
                remarks.setdefault(n * width + int(place[remark.stage]), []).append(remark)

        case_of = np.full(self._processes, -1)
        case_of[[one.number for _, one in members]] = [n for n, _ in members]
        process = self._column("process").astype(np.int64)
        row_of = case_of[process] * width + place[self._column("stage").astype(np.int64)]
        order = np.argsort(row_of, kind="stable")
        order = order[np.count_nonzero(row_of < 0) :]  # of those that others replaced
        row_of = row_of[order]
        ids = np.union1d(row_of, np.fromiter(remarks, np.int64, len(remarks)))
        for n in np.setdiff1d(np.arange(len(cases)), ids // width).tolist():
            usual = ("first_call",) if cases[n].alone else CASE_STAGES
            ids = np.append(ids, n * width + place[[self._stages[name][0] for name in usual]])
        ids.sort()
        case = ids // width
        by_number = dict[int, _Process]((one.number, one) for _, one in members)
        columns = _statistics(self._column, order, row_of, ids, by_number)
        columns |= _of_cases(cases, case)
        columns["stage"] = objects(stages)[ids % width]
        columns["unit"] = objects(["seconds"])[np.zeros(len(ids), np.int64)]

        facts = [one.agreed_facts() for one in cases]
        compared = [one.compared() for one in cases]
        totals = np.array([own for own, _ in facts], float).reshape(-1, len(TOTALS))[case]
        columns |= {name: totals[:, at] for at, name in enumerate(TOTALS)}
        columns |= {
            name: objects(one[at] for one in compared)[case]
            for at, name in enumerate(("comparable", "labels"))
        }
        notes = [
            "; ".join(filter(None, (of_facts, why, other, one.program_changed * PROGRAM_CHANGED)))
            for one, (_, of_facts), (*_, why), other in zip(
                cases, facts, compared, left_out, strict=True
            )
        ]
        outcomes = objects([("ok", "")])[np.zeros(len(ids), np.int64)]
        noted = [bool(note) for note in notes]
        failed = [bool(one.reasons("failed")) for one in cases]
        special = (columns["n_processes"] == 0) | np.isin(ids, list(remarks))
        special |= (np.array(noted, bool) | np.array(failed, bool))[case]
        for row in np.flatnonzero(special).tolist():
            n, valued = int(case[row]), int(columns["n_processes"][row])
            outcomes[row] = cases[n].outcome(valued, remarks.get(int(ids[row]), []), notes[n])
        columns["status"] = objects(status for status, _ in outcomes)
        columns["reason"] = objects(reason for _, reason in outcomes)
        return to_frame(columns, [one.axes for one in cases], case)


_Taken = tuple[int, int, float, Stage, StageSamples]
"""The number of a process and of a stage, what that is divided by, and what was taken of it."""


def _block(rows: Sequence[_Taken]) -> _Block:
    """Return the rows of a file by column.

    Waiting is wall time beyond CPU time, below 0 where several threads computed at once.
    """
    block = {"value": np.empty(len(rows))}

    def put(at: int, name: str, value: float) -> None:
        if name not in block:
            block[name] = np.full(len(rows), math.nan)
        block[name][at] = value

    alike: dict[tuple[Callable[..., float], int], list[int]] = {}
    for at, (*_, stage, one) in enumerate(rows):
        alike.setdefault((stage.statistic, len(one.samples_ns)), []).append(at)
        if one.cpu_ns:
            put(at, "cpu", min(one.cpu_ns))
            if stage.clock == "cpu" and len(one.cpu_ns) == len(one.samples_ns):
                put(at, "waiting", min(map(float.__sub__, one.samples_ns, one.cpu_ns)))
        if one.calls:
            for name in _CALLS:
                put(at, name, getattr(one.calls, name))
        if one.programs or one.collected_ns:
            for name in _PASSES:
                if passes := getattr(one, name):
                    put(at, name, median(passes))
    for (statistic, size), places in alike.items():
        samples = [rows[at][-1].samples_ns for at in places]
        if statistic in (min, median):
            flat = itertools.chain.from_iterable(samples)
            ordered = np.fromiter(flat, float, size * len(places)).reshape(-1, size)
            ordered.sort(axis=1)
            middle = (0, 0) if statistic is min else ((size - 1) // 2, size // 2)
            block["value"][places] = ordered[:, middle].mean(axis=1)
        else:
            block["value"][places] = list(map(statistic, samples))
    process, stages, by, _, taken = zip(*rows, strict=True)
    block["process"], block["stage"] = np.array(process, np.int32), np.array(stages, np.int32)
    block["by"], block["method"] = np.array(by), np.array([one.method for one in taken], np.float32)
    return block


def _of_cases(cases: list[_Case], case: Array) -> dict[str, Any]:
    """Return the columns that are the same in all rows of a case, `case` being that of each row."""
    of_processes = [[*one.processes.values()] for one in cases]
    texts = [one.text for one in cases]
    flags = [flags_of(one.environment, bool(one.text["threads"])) for one in cases]
    own = ("effort", "protocol", "environment", "fingerprint", "inputs")
    started = [max(p.started_at for p in several) for several in of_processes]
    columns = {
        **{name: objects(one[name] for one in texts) for name in _DESCRIBED},
        **{name: objects(one[name] for one in flags) for name in FLAGS},
        **{name: objects(getattr(one, name) for one in cases) for name in own},
        "code": objects(one.ran() for one in cases),
        "entry_bytes": np.array([one.entry_bytes for one in cases], float),
        "n_forked": np.array([sum(p.forked for p in several) for several in of_processes], float),
        "commit_date": np.array([one.commit_date for one in cases], np.int64),
        "started_at": np.array(started, np.int64),
    }
    return {name: column[case] for name, column in columns.items()}


def _statistics(
    column: Callable[[str], Array],
    order: Array,
    row_of: Array,
    ids: Array,
    processes: Mapping[int, _Process],
) -> dict[str, Any]:
    """Return the columns made of values: medians over processes, their intervals, and lists.

    Args:
        column: returns a column of the table, empty where it is NaN throughout.
        order: rows of the table as they are taken, those of one row of the frame together.
        row_of: which row of the frame each of them belongs to.
        ids: the rows of the frame, sorted.
        processes: by number.
    """

    def seconds(name: str, scale: float = 1e9) -> Array:
        own = column(name)
        return own[order] / scale if len(own) else own

    value, calls = seconds("value"), seconds("calls", 1)
    lists = {
        "samples": value,
        "calibrated_samples": value / seconds("by") if len(value) else value,
        "cpu_samples": seconds("cpu"),
        "p90_samples": seconds("p90_ns"),
        "waiting_samples": seconds("waiting"),
    }
    medians = {"value": value, "calibrated": lists["calibrated_samples"]}
    for name, of in _COLUMNS.items():
        medians[name] = seconds(of, 1e9 if of.endswith("_ns") else 1)
    ends = {"value": ("low", "high"), "p50": ("p50_low", "p50_high")}
    names = (*medians, *ends["value"], *ends["p50"], "n_calls")
    result: dict[str, Any] = {name: np.full(len(ids), math.nan) for name in names}
    result |= {name: objects([[]])[np.zeros(len(ids), np.int64)] for name in LISTS}
    rows, starts, counts = np.unique(row_of, return_index=True, return_counts=True)
    at_row = np.searchsorted(ids, rows)
    sizes = np.zeros(len(ids), np.int64)
    sizes[at_row] = counts
    process = column("process").astype(np.int64)[order]
    for size in np.unique(counts).tolist():
        chosen = counts == size
        at, members = at_row[chosen], starts[chosen][:, None] + np.arange(size)
        ranks = median_interval_ranks(size)
        for name, values in medians.items():
            if not len(values):
                continue
            ordered = np.sort(values[members], axis=1)  # NaN, which is not known, is last
            valued = size - np.isnan(ordered).sum(axis=1)
            middle = np.stack([(valued - 1) // 2, valued // 2]).clip(0, size - 1).T
            result[name][at] = np.take_along_axis(ordered, middle, axis=1).mean(axis=1)
            if name in ends and ranks is not None:
                for end, rank in zip(ends[name], ranks, strict=True):
                    result[end][at] = np.where(valued == size, ordered[:, rank], math.nan)
        if len(calls):
            result["n_calls"][at] = calls[members].sum(axis=1)
        for name, values in lists.items():
            if len(values):
                own = values[members]
                there = ~np.isnan(own).all(axis=1)
                there |= name in ("samples", "calibrated_samples")
                result[name][at[there]] = objects(own[there].tolist())
        # All stages of a case have the same processes, mostly: one list of what is known of them.
        numbers = process[members]
        is_new = np.ones(len(numbers), bool)
        is_new[1:] = (numbers[1:] != numbers[:-1]).any(axis=1)
        distinct, of_row = numbers[is_new].tolist(), np.cumsum(is_new) - 1
        for name, attribute in (
            ("processes", "name"),
            ("others_cores", "others_cores"),
            ("load_averages", "load_average"),
        ):
            each = ([getattr(processes[n], attribute) for n in several] for several in distinct)
            recorded = ([] if all(one != one for one in several) else several for several in each)
            result[name][at] = objects(recorded)[of_row]
    level = np.where(np.isnan(result["low"]), np.nan, LEVEL)
    return {**result, "n_samples": sizes, "n_processes": sizes, "interval_level": level}
