"""Cases of records: what each process says of one, one value per stage, as it is read.

A tree may hold hundreds of thousands of records, so a record is reduced to one value per stage as
soon as it is read. Processes of a case that ran other code than its last one are never pooled.
"""

from __future__ import annotations

import functools
import math
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from harness.declare.code import conflicts
from harness.frame.columns import NO_MOMENT, order_of, to_moment
from harness.program.facts import Facts
from harness.records.schema import (
    FIRST_CALL,
    Comparison,
    Record,
    StageSamples,
    apart,
    digest,
    plain_axes,
)
from harness.sides.registry import REFERENCE
from harness.stages.registry import ALONE_STAGES, OWN_PROGRAM, STAGES, stage_of, used
from harness.stages.registry import reason as reason_of
from harness.stages.stage import LOOP, median

_TEXT = (
    *("machine", "commit", "env", "python", "jax", "jaxlib"),
    *("workload", "version", "target", "transform", "scenario", "dirty"),
    *("precision", "night"),
)
"""Text that is the same in all records of a case."""

_MEASURED = ("ok", "refused")

DESCRIBED = (*_TEXT, "backend", "threads", "static")

NOT_RECORDED = "one did not record what it ran"

PROGRAM_CHANGED = (
    "the program changed though no code did: an environment variable or data file that is not in "
    "depends_on?"
)


Remark = tuple[int, dict[str, int], str]


class ProcessValues(NamedTuple):
    """What a record says besides what is the same in all records of its case."""

    file: int
    started_at: int
    status: str
    reason: str
    values: array[float]
    """:func:`elements` of each stage with samples."""
    remarks: tuple[Remark, ...]
    """Of stages: what was refused, or why there are no samples."""
    facts: Facts | None
    comparison: Comparison | None
    forked: bool
    code: str
    """The JSON text of the code that it ran; empty where that is not recorded."""
    name: str
    """What tells it from other processes, the same in all records of it; "" in old ones."""
    cpu_ns: Mapping[int, float]
    """By number, stages of which it knows CPU time for the row that others measured."""


@dataclass(slots=True)
class CaseRecords:
    """A case, and the record that speaks for each of its processes."""

    described: bool = False
    apart: str = ""
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
    processes: dict[str, ProcessValues] = field(default_factory=dict)

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
        """Leave out processes that ran other code than the last one; say which, and why."""
        ran = {name: p for name, p in self.processes.items() if p.code or p.status in _MEASURED}
        if len({one.code for one in ran.values()}) < 2:
            return ""
        last = max(ran.values(), key=lambda one: (one.file, one.started_at))
        found = {name: _differences(one.code, last.code) for name, one in ran.items()}
        others = [name for name, differing in found.items() if differing]
        for name in others:
            del self.processes[name]
        names = dict.fromkeys(one for differing in found.values() for one in differing)
        text = "processes ran other code and are left out"
        return f"{len(others)} of {len(found)} {text}: {', '.join(names)}" if others else ""

    def ran(self) -> str:
        """Return a digest of all code that its processes ran; "" where one did not record it."""
        ran = {one.code for one in self.processes.values() if one.status in _MEASURED}
        return "" if not ran or "" in ran else _digest(frozenset(ran))

    def reasons(self, status: str) -> list[str]:
        """Return why processes of the case came to `status`."""
        return [one.reason for one in self.processes.values() if one.status == status]


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
    """Return the code of a record as JSON text, kept once; "" if not recorded."""
    return sys.intern(msgspec.json.encode(code).decode()) if code else ""


class Collector:
    """Takes the records of many files, and keeps of each case those that count."""

    def __init__(self) -> None:
        self._files = 0
        self.cases: dict[str, CaseRecords] = {}
        # The loop is what others are divided by, and no measure of itself.
        self.stages = {
            name: (number, stage.calibrated_by if name != LOOP else "", stage.statistic)
            for number, (name, stage) in enumerate(STAGES.items())
        }
        self._environments: dict[bytes, str] = {b"": ""}

    def take(self, records: Iterable[Record]) -> None:
        """Take the records of one file, in the order in which they were written."""
        self._files += 1
        cases = self.cases
        for record in records:
            case = cases.get(record.key)
            if case is None:
                case = cases[record.key] = CaseRecords()
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
                code = _text_of(record.code)
                if case.fingerprint and code and not _differences(code, case.fingerprint_of):
                    case.program_changed = True
                case.fingerprint, case.fingerprint_of = record.fingerprint, code
            case.inputs = record.inputs or case.inputs
            case.entry_bytes = record.entry_bytes or case.entry_bytes
            if record.facts is not None and record.facts != case.facts:
                case.facts = record.facts
            # The few names of processes are shared by all cases.
            case.processes[sys.intern(record.replicate)] = self._process(
                record, None if record.facts is None else case.facts
            )

    def _describe(self, case: CaseRecords, record: Record) -> None:
        # A record that could not find its case has neither axes nor transform.
        case.described = bool(record.transform)
        side = record.comparison
        case.apart = apart(record.protocol)
        text = [getattr(record, name) for name in _TEXT]
        text += (side.backend, side.threads) if side else (REFERENCE, "")
        text.append(", ".join(record.static))
        case.text = dict(zip(DESCRIBED, map(sys.intern, text), strict=True))
        case.axes = plain_axes(record.axes)
        case.commit_date = to_moment(record.commit_date_ms)
        # The same few hundred bytes in thousands of cases: kept once.
        raw = bytes(record.environment)
        case.environment = self._environments.setdefault(raw, raw.decode())

    def _process(self, record: Record, facts: Facts | None) -> ProcessValues:
        status = record.status if record.status in (*_MEASURED, "skipped") else "failed"
        measured = status in _MEASURED
        numbers: list[float] = []
        remarks: tuple[Remark, ...] = ()
        stages, reference = self.stages, record.reference_ns
        own = apart(record.protocol) in OWN_PROGRAM
        cpu_ns = dict[int, float]()
        load = (
            math.nan if record.others_cores is None else record.others_cores,
            record.load_average[0] if record.load_average else math.nan,
        )
        old = record.protocol != FIRST_CALL and record.comparison is None
        for stage, taken in record.stages.items():
            if old and stage in ALONE_STAGES:
                stage = used(stage)
            known = stages.get(stage)
            if known is None:  # of another release of the harness
                known = stages[stage] = len(stages), "", median
            number, calibrated_by, statistic = known
            samples = taken.samples_ns
            if own and stage not in OWN_PROGRAM:
                if taken.cpu_ns:
                    cpu_ns[number] = stage_of(stage).cpu_statistic(taken.cpu_ns)
                continue
            if samples:
                by = reference.get(calibrated_by) or math.nan
                numbers += elements(number, statistic(samples), by, taken)
                numbers += waiting_ns(stage, taken), *load, taken.method
            if taken.refused or taken.reason or not samples:
                remarks += ((number, taken.refused or {}, reason_of(taken)),)
        reason = "" if measured else sys.intern(record.reason)
        values, side = array("d", numbers), record.comparison
        started_at = record.started_at_ms
        code, process = _text_of(record.code), sys.intern(record.process)
        about = values, remarks, facts, side, bool(record.parent), code, process
        return ProcessValues(self._files, started_at, status, reason, *about, cpu_ns)


WIDTH = 16
"""How many numbers one process gives for one stage: :func:`elements`, the nanoseconds that it
waited, how many cores others used, the load average, and the method."""


def waiting_ns(stage: str, taken: StageSamples) -> float:
    """Return the wall time beyond CPU time of a stage, the least over passes; NaN if not known.

    It is below 0 where several threads computed at once.
    """
    if stage_of(stage).clock != "cpu" or len(taken.cpu_ns) != len(taken.samples_ns):
        return math.nan
    each = zip(taken.samples_ns, taken.cpu_ns, strict=True)
    return min((wall - cpu for wall, cpu in each), default=math.nan)


def elements(number: int, value_ns: float, by_ns: float, taken: StageSamples) -> tuple[float, ...]:
    """Return what one process gives for a stage.

    They are the number of the stage, its value and the reference's; of its calls the least, the
    10, 50 and 90 %, and how many they were; of programs that were built inside of it how many, and
    the nanoseconds; and those of Python's garbage collector. These are medians over passes. The
    last is the process's CPU time, the least over passes. NaN is what is not known.
    """
    calls, programs = taken.calls, taken.programs
    told = (math.nan,) * 5
    if calls:
        told = (calls.least_ns, calls.p10_ns, calls.p50_ns, calls.p90_ns, calls.calls)
    built = (median(programs), median(taken.programs_ns)) if programs else (math.nan,) * 2
    collected = median(taken.collected_ns) if taken.collected_ns else math.nan
    cpu_ns = min(taken.cpu_ns, default=math.nan)
    return (number, value_ns, by_ns, *told, *built, collected, cpu_ns)
