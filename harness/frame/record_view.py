"""The fields of records that rows need, and the reading of files of them.

A tree may hold hundreds of thousands of records, so the rest of their lines is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.program.facts import TOTALS
from harness.records.schema import Problems, read_file_as

if TYPE_CHECKING:
    from harness.program.facts import Facts

    TotalsView = Facts
else:
    # Of the many facts a row needs only those that are one number.
    TotalsView = msgspec.defstruct(
        "TotalsView", [(name, float | None, None) for name in TOTALS], gc=False
    )


class _Calls(msgspec.Struct, gc=False):
    """The fields of :class:`harness.records.distribution.Distribution` that a row needs."""

    calls: int
    least_ns: float
    p10_ns: float
    p50_ns: float
    p90_ns: float


class StageView(msgspec.Struct, gc=False):
    """The fields of :class:`harness.records.schema.StageSamples` that a row needs."""

    samples_ns: list[float] = msgspec.field(default_factory=list)
    refused: dict[str, int] | None = None
    reason: str = ""
    programs: list[int] = []
    programs_ns: list[float] = []
    calls: _Calls | None = None
    collected_ns: list[float] = []
    cpu_ns: list[float] = []


class ComparisonView(msgspec.Struct, gc=False):
    """The fields of :class:`harness.records.schema.Comparison` that a row needs."""

    backend: str
    threads: str
    comparable: bool = False
    reasons: list[str] = []
    labels: list[str] = []


class RecordView(msgspec.Struct, gc=False):
    """The fields of :class:`harness.records.schema.Record` that a row needs."""

    schema: int
    key: str
    replicate: str
    workload: str
    version: str
    axes: dict[str, Any]
    transform: str
    target: str
    scenario: str
    status: str
    machine: str
    env: str
    commit: str
    commit_date_ms: int | None
    effort: str
    protocol: str
    started_at_ms: int
    python: str
    jax: str
    jaxlib: str
    precision: str = ""
    reason: str = ""
    stages: dict[str, StageView] = msgspec.field(default_factory=dict)
    reference_ns: dict[str, float] = msgspec.field(default_factory=dict)
    fingerprint: str = ""
    facts: TotalsView | None = None
    comparison: ComparisonView | None = None
    entry_bytes: int = 0
    dirty: str = ""
    night: str = ""
    static: list[str] = []
    environment: msgspec.Raw = msgspec.Raw()
    code: msgspec.Raw = msgspec.Raw()
    parent: str = ""
    process: str = ""


_decoder = msgspec.json.Decoder(RecordView)


def read_records(path: Path, problems: Problems) -> Iterator[RecordView]:
    """Yield what rows need of the records of one file; a file that holds none is counted as one.

    Without that, each line of a foreign text file would count as a corrupt one.
    """
    before = problems.corrupt, problems.torn, problems.other_schema
    said = len(problems.files)
    found = False
    for record in read_file_as(_decoder, path, problems):
        found = True
        yield record
    bad = (problems.corrupt, problems.torn) != before[:2]
    if bad and not found and problems.other_schema == before[2] and not _looks_like_ours(path):
        problems.corrupt, problems.torn = before[:2]
        problems.unreadable += 1
        del problems.files[said:]
        problems.note(path, "no records in it")


def _looks_like_ours(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            head = handle.read(2**20)
    except OSError:
        return False
    opening = b'{"schema":'
    return opening in head or opening.startswith(head)
