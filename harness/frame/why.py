"""Which code a row stands for, and what became of processes that ran other code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from harness.declare.code import EDITED, UNREADABLE, conflicts, current
from harness.frame.cases import key_of_record, key_of_row
from harness.frame.frame import INSTRUMENTS, axis_columns, rows_of
from harness.frame.load import record_files_of
from harness.frame.record_cases import NOT_RECORDED
from harness.frame.tables import case_texts
from harness.records.git import Commit
from harness.records.schema import Problems, Record, read_file
from harness.records.units import counted, some

_MEASURED = ("ok", "refused")

SHORT = 8
"""Digits of a digest that people are shown."""

_MOST_FILES = 12


class Code(msgspec.Struct):
    """A source file, module, distribution, variable or file that a row stands for."""

    name: str
    digest: str
    now: str
    """The digest of what is here now; `unreadable` where there is nothing."""
    name_now: str
    """The name with the version that is installed now; elsewhere the same name."""

    @property
    def differs(self) -> bool:
        """Whether it is other code now."""
        return (self.name, self.digest) != (self.name_now, self.now)

    @property
    def line(self) -> str:
        """What people are shown of it."""
        name, value = self.name, "" if "==" in self.name else f"  {_short(self.digest)}"
        now = _short(self.now) if name == self.name_now else self.name_now.partition("==")[2]
        return f"{name}{value} (now {now})" if self.differs else f"{name}{value}"


def _short(value: str) -> str:
    """Return a digest by its first digits; a word that stands for one stays."""
    return value if value in (EDITED, UNREADABLE) else value[:SHORT]


class Why(msgspec.Struct):
    """Which code one case stands for, and what is known of its processes."""

    workload: str
    case: str
    machine: str
    env: str
    commit: str
    dirty: str
    """Digest of what git saw changed since the commit."""
    snapshot: bool
    """Whether a copy was measured that was taken when the sweep began."""
    program: str
    """The fingerprint of what was built."""
    processes: list[str]
    """Those that the row pools."""
    sweeps: list[str]
    """The sweeps that measured these: of more than one, the later ones reused the earlier."""
    left_out: dict[str, list[str]]
    """Processes of other code that are not pooled, and what differs."""
    replaced: list[str]
    """Code in which earlier records differ that were measured again."""
    code: list[Code]
    next: str
    """What the next sweep here does with it."""


class _Records(NamedTuple):
    latest: dict[str, Record]
    replaced: list[Record]


def why(results: Path, rows: pd.DataFrame, project: Path, commit: Commit) -> list[Why]:
    """Return one :class:`Why` per case of some rows.

    Args:
        results: the tree or file that the rows are of.
        rows: as `load` gives them, of ordinary measurements.
        project: the folder that names of the project's files start from.
        commit: what git says of it now.
    """
    rows = rows[~rows["workload"].isin(INSTRUMENTS)]
    axes = axis_columns(rows)
    wanted: dict[tuple[Any, ...], str] = {}
    for row, text in zip(rows_of(rows), case_texts(rows, scenario=True), strict=True):
        wanted.setdefault(key_of_row(row, axes), text)
    found = _records(results, set(rows["workload"]))
    known: dict[tuple[str, str], Code] = {}
    return [
        _why(text, found[key], project, commit, known)
        for key, text in wanted.items()
        if key in found
    ]


def _records(results: Path, workloads: set[str]) -> dict[tuple[Any, ...], _Records]:
    """Return the records of each case by what its row says of it, as the last of them has it."""
    cases: dict[str, _Records] = {}
    for path in record_files_of(results):
        for record in read_file(path, Problems()):
            if record.workload in workloads and record.comparison is None:
                of_case = cases.setdefault(record.key, _Records({}, []))
                earlier = of_case.latest.pop(record.replicate, None)
                of_case.replaced.extend([earlier] if earlier else [])
                of_case.latest[record.replicate] = record
    # What is taken apart from a case has its identity too: the first is that which is visited.
    of_cases = reversed(cases.values())
    return {key_of_record(list(of_case.latest.values())[-1]): of_case for of_case in of_cases}


def _why(
    case: str, records: _Records, project: Path, commit: Commit, known: dict[tuple[str, str], Code]
) -> Why:
    measured = {name: one for name, one in records.latest.items() if one.status in _MEASURED}
    last = max((measured or records.latest).values(), key=lambda one: one.started_at_ms)
    others = {
        _process(name): _differing(one, last)
        for name, one in measured.items()
        if _differing(one, last)
    }
    pooled = {_process(name): one for name, one in measured.items() if _process(name) not in others}
    code = []
    for name, value in last.code.items():
        if (name, value) not in known:
            known[name, value] = Code(name, value, *current(name, project))
        code.append(known[name, value])
    about = last.machine, last.env, last.commit, last.dirty, last.snapshot, last.fingerprint
    sweeps = list(dict.fromkeys(one.sweep for one in pooled.values()))
    replaced = list(dict.fromkeys(n for one in records.replaced for n in _differing(one, last)))
    known_of = list(pooled), sweeps, others, replaced
    return Why(last.workload, case, *about, *known_of, code, _next(last, code, commit))


def _process(replicate: str) -> str:
    return replicate.rpartition("#")[2]


def _differing(one: Record, last: Record) -> list[str]:
    if not one.code or not last.code:
        return [] if one.code == last.code else [NOT_RECORDED]
    return conflicts(one.code, last.code)


def _next(last: Record, code: list[Code], commit: Commit) -> str:
    differing = [one.name for one in code if one.differs]
    if last.status not in _MEASURED:
        return f"measured again: it is {last.status}"
    if not last.code:
        return "measured again: it is not recorded which code ran"
    if differing:
        return f"measured again: {some(differing, 3)} changed"
    if (last.commit, last.dirty) != (commit.hash, commit.dirty):
        return "measured again: git is at another commit, or has other changes"
    return "reused, if workload and environment are as they were"


def texts(found: Iterable[Why]) -> Iterator[str]:
    """Yield a text of several lines for all cases of one workload that stand for the same."""
    alike: dict[bytes, list[Why]] = {}
    for one in found:
        about = msgspec.structs.replace(one, case="", program="", sweeps=[])
        alike.setdefault(msgspec.json.encode(about), []).append(one)
    for same in alike.values():
        yield "\n".join(_lines(same[0], [one.case for one in same]))


def _lines(one: Why, cases: list[str]) -> Iterator[str]:
    named = cases[0] if len(cases) == 1 else f"({len(cases)} cases)"
    yield f"{one.workload} {named}".rstrip()
    changes = f" with uncommitted changes ({one.dirty[:SHORT]})" if one.dirty else ""
    place = "a copy taken when the sweep began" if one.snapshot else "the files where they are"
    yield f"  git       {f'commit {one.commit[:SHORT]}{changes}' if one.commit else 'none'}"
    processes, sweeps = counted(len(one.processes), "process"), counted(len(one.sweeps), "sweep")
    yield f"  measured  {place}; {processes} of {sweeps}"
    packages = [each for each in one.code if "==" in each.name]
    files = [each for each in one.code if "==" not in each.name]
    yield from _listed("code", files, _MOST_FILES)
    yield from _listed("packages", packages)
    for process, names in one.left_out.items():
        yield f"  left out  process {process}, which ran other code: {some(names, 3)}"
    if one.replaced:
        yield f"  replaced  earlier processes, which ran other code: {some(one.replaced, 3)}"
    yield f"  next run  {one.next}"


def _listed(title: str, code: list[Code], room: int = 0) -> Iterator[str]:
    """Yield what differs first; what is as it was only as far as there is room, in lines."""
    differing = [each for each in code if each.differs]
    said = f"{len(differing)} of {len(code)} differ from what is here now"
    yield f"  {title:<8}  {said if differing else f'{len(code)}, as they are here now'}"
    same = [each for each in code if not each.differs]
    shown = [*differing, *same[: max(room - len(differing), 0)]]
    for each in shown:
        yield f"            {'* ' if each.differs else '  '}{each.line}"
    if room and len(shown) < len(code):
        yield f"              ... and {len(code) - len(shown)} more: --format json has all"
