"""The fields of records that rows need, and the reading of files of them.

A tree may hold hundreds of thousands of records, so the rest of their lines is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.program.facts import TOTALS, Facts
from harness.records.distribution import Distribution
from harness.records.schema import Comparison, Problems, Record, StageSamples, read_file_as


def _view(struct: type[msgspec.Struct], needed: Iterable[str], **types: Any) -> Any:
    """Return a struct with the fields of another one that are needed; `types` has other types."""
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    parts = []
    for name, field in fields.items():
        if name not in {*needed, *types}:
            continue
        kind, default = types.get(name, field.type), field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(default_factory=field.default_factory)
        parts.append((name, kind) if field.required else (name, kind, default))
    return msgspec.defstruct(f"{struct.__name__}View", parts, gc=False)


if TYPE_CHECKING:
    TotalsView = Facts
    StageView = StageSamples
    ComparisonView = Comparison
    RecordView = Record
else:
    # Of the many facts a row needs only those that are one number.
    TotalsView = _view(Facts, (), **dict.fromkeys(TOTALS, float | None))
    StageView = _view(
        StageSamples,
        ("samples_ns", "refused", "reason", "programs", "programs_ns", "collected_ns", "cpu_ns"),
        calls=_view(Distribution, ("calls", "least_ns", "p10_ns", "p50_ns", "p90_ns")) | None,
    )
    ComparisonView = _view(Comparison, ("backend", "threads", "comparable", "reasons", "labels"))
    RecordView = _view(
        Record,
        {field.name for field in msgspec.structs.fields(Record)}
        - {"sweep", "seed", "snapshot", "compile_times", "not_forked"}
        - {"load_average", "retries", "stderr", "worker"},
        stages=dict[str, StageView],
        code=msgspec.Raw,
        facts=TotalsView | None,
        comparison=ComparisonView | None,
    )


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
