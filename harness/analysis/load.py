"""Load what was measured into one tidy frame: a row per case and stage."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd

from harness.analysis import asv_results
from harness.analysis.frame import Rows, to_frame
from harness.analysis.record_rows import Collector, read_records
from harness.errors import HarnessWarning, UsageError
from harness.records import Problems, Record

ADVICE = "Measure with `make bench` or `harness run`, or name the folder that holds the results."


def load(
    path: str | os.PathLike[str] = "results", *, problems: Problems | None = None
) -> pd.DataFrame:
    """Return a frame with one row per case and stage.

    Rows come from records; asv's own result files are read for what no record covers: the results
    of a foreign suite, or of one whose records were not kept.

    Args:
        path: a results tree, one machine's folder in it, or one file of records or of asv's.
        problems: takes the count of what could not be used; it is in `frame.attrs["problems"]` too.

    Returns:
        The columns of :data:`harness.analysis.frame.COLUMNS`, then one per axis, NaN for workloads
        without it. `value` is the median over processes of each process's one value
        (:func:`harness.records.value_ns`) in seconds; `samples` are these values. `low` and `high`
        enclose it at 95 % (order statistics; NaN under 6 processes), at 99 % in rows from asv.
        `calibrated` is the median of value / the reference's value of the same process, and
        `calibrated_samples` are these ratios, in the order of `samples`. `status` is `ok`,
        `failed`, `skipped` or `refused`, and `reason` says why, or what an `ok` leaves out.

    Raises:
        UsageError: there is no such path.
    """
    path = Path(path)
    found = Problems()
    if not path.exists():
        raise UsageError(f"There are no results at {path}: it does not exist. {ADVICE}")
    with _no_collection():
        frame = _read(_sources(path), found)
    frame.attrs["problems"] = msgspec.structs.asdict(found)
    warn_of(path, found)
    if frame.empty:
        warnings.warn(f"There are no results in {path}. {ADVICE}", HarnessWarning, stacklevel=2)
    if problems is not None:
        _add(problems, found)
    return frame


def warn_of(path: Path, problems: Problems) -> None:
    """Warn the caller's caller of what could not be used."""
    if problems:
        warnings.warn(f"{path}: {problems.summary()}", HarnessWarning, stacklevel=3)


def record_files_of(path: Path) -> list[Path]:
    """Return the files of records in a results tree or one machine's folder, or the file itself."""
    return _sources(path).records


def frame_of(records: Iterable[Record]) -> pd.DataFrame:
    """Return the frame of records that are at hand; see :func:`load` for what is in it."""
    collector = Collector()
    collector.take(records)
    return to_frame([collector.rows()])


def _read(sources: _Sources, problems: Problems) -> pd.DataFrame:
    collector = Collector()
    for file in sources.records:
        collector.take(read_records(file, problems))
    rows = collector.rows()
    return to_frame([rows, asv_results.read(sources.asv, _covered(rows), problems)])


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from going through all rows again and again as they come.

    It makes loading a large tree take up to half as long again, and finds nothing: rows hold no
    cycles.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Sources(NamedTuple):
    """Where results are."""

    records: list[Path]
    asv: list[Path]


def _sources(path: Path) -> _Sources:
    if path.is_file():
        return _Sources([], [path]) if path.suffix == ".json" else _Sources([path], [])
    is_machine = (path / "records").is_dir() or (path / "machine.json").exists()
    prefix = "" if is_machine else "*/"
    asv = [file for file in path.glob(f"{prefix}*.json") if file.name != "machine.json"]
    return _Sources(sorted(path.glob(f"{prefix}records/*.jsonl")), sorted(asv))


def _covered(rows: Rows) -> asv_results.Coverage:
    names = ("machine", "commit", "workload", "env")
    return set(zip(*(rows.columns[name] for name in names), strict=True))


def _add(problems: Problems, found: Problems) -> None:
    problems.torn += found.torn
    problems.corrupt += found.corrupt
    problems.other_schema += found.other_schema
    problems.unreadable += found.unreadable
    problems.files += found.files
