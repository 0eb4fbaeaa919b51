"""The records behind the rows of an arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.frame.frame import axis_column
from harness.frame.load import record_files_of
from harness.records.schema import Problems, Record, plain_axes, read_file
from harness.verdicts.pairs import Row, axes_key, axes_of

if TYPE_CHECKING:
    from harness.verdicts.arms import Arm

_IDENTITY = (
    *("workload", "machine", "commit", "dirty", "env", "effort", "night", "version"),
    *("target", "transform", "precision", "scenario"),
)

Key = tuple[Any, ...]
"""What a row and its records share."""


@dataclass(frozen=True)
class StoredRecords:
    """The records behind an arm, read anew whenever they are gone through."""

    arm: Arm
    results: Path
    """The tree that holds those of an arm that is no path."""

    def __iter__(self) -> Iterator[Record]:
        yield from records_under(Path(self.arm.text) if not self.arm.where else self.results)


def records_under(place: Path) -> Iterator[Record]:
    """Yield the records of a results tree or file; none of Parquet files, and of what asv wrote."""
    if place.exists() and place.suffix not in (".parquet", ".json"):
        for path in record_files_of(place):
            yield from read_file(path, Problems())


def key_of(row: Row | None, axes: Sequence[str]) -> Key:
    """Return what the records of a row share; () for none."""
    if row is None:
        return ()
    return (*(row[name] for name in _IDENTITY), axes_key(axes_of(row, axes)))


def records_of(records: Iterable[Record], wanted: set[Key]) -> dict[Key, list[Record]]:
    """Return the records of rows, one per process, the latest of each."""
    workloads = {key[0] for key in wanted}
    processes: dict[Key, dict[str, Record]] = {}
    for record in records:
        if record.workload not in workloads or record.comparison is not None:
            continue
        axes = {axis_column(name): value for name, value in plain_axes(record.axes).items()}
        key = (*(getattr(record, name) for name in _IDENTITY), axes_key(axes))
        if key in wanted:
            processes.setdefault(key, {})[record.replicate] = record
    return {key: list(latest.values()) for key, latest in processes.items()}
