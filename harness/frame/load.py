"""Load what was measured into one tidy frame: a row per case and stage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from harness.errors import HarnessWarning, UsageError
from harness.frame import asv_results
from harness.frame.choose import LEFT_OUT, Where, choose_columns, first_look
from harness.frame.differences import warn_of_shared_names
from harness.frame.export import parquet
from harness.frame.frame import flags_of
from harness.frame.process_values import ProcessTable
from harness.program.collector import gc_off
from harness.records.schema import Damage, Problems, Record, read_file

ADVICE = "Measure with `harness run`, or name the folder that holds the results."


def load(
    path: str | os.PathLike[str] = "results",
    *,
    all: bool = False,
    where: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    problems: Problems | None = None,
) -> pd.DataFrame:
    """Return a frame with one row per case and stage: what was measured last, or everything.

    Rows come from records; asv's own result files are read for what no record covers: the results
    of a foreign suite, or of one whose records were not kept. A Parquet file that `harness export`
    wrote gives the same rows.

    Args:
        path: a results tree, one machine's folder in it, one file of records or of asv's, or a
            Parquet file that `harness export` wrote.
        all: everything. Without it, a first look, in which medians can be taken and pivots made:
            of each machine the newest commit and environment, without comparisons with baselines,
            skipped cases, and targets that were compiled for and not run.
            `frame.attrs["left_out"]` says what is missing. A column that `where` names is
            narrowed by that alone.
        where: conditions on columns, all of which a row must meet: a value, or a list of values of
            which it has one, such as `{"workload": "nn.Predict", "stage": ["trace", "compile"]}`.
        columns: the columns of the frame, instead of all.
        problems: takes the count of what could not be used; it is in `frame.attrs["problems"]` too.

    Returns:
        The columns of :data:`harness.frame.columns.COLUMNS`, whose types, units and meanings stand
        in docs/frame.md, then one per axis, of Python's objects: as the workload has them, NaN for
        workloads without the axis.

        Warns where a machine's name stands for unlike machines (:mod:`harness.frame.differences`).

    Raises:
        UsageError: there is no such path or column, or a value is none that the column can have.
        StoreError: a Parquet file is damaged, or was not written by this version.
    """
    if isinstance(columns, str):
        raise UsageError(f"columns={columns!r}: expected a list of names, such as [{columns!r}].")
    frame = _frame(Path(path), Where(where), problems)
    left_out = ""
    if not all:
        frame, left_out = first_look(frame, where or {})
    if columns is not None:
        frame = choose_columns(frame, columns)
    if left_out:
        frame.attrs[LEFT_OUT] = left_out
    return frame


def everything(
    path: str | os.PathLike[str], *, where: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return all rows, as :func:`load` does with `all=True`."""
    return _frame(Path(path), Where(where))


def _frame(path: Path, conditions: Where, problems: Problems | None = None) -> pd.DataFrame:
    unusable = Problems()
    _check_there(path)
    with gc_off():  # it would go through all rows again and again, which hold no cycles
        if path.is_file() and path.suffix == ".parquet":
            frame: pd.DataFrame = conditions.of(parquet(f"{path}: Parquet").read(path))
        else:
            frame = conditions.of(_read(*_sources(path), conditions, unusable))
    warn_of_shared_names(frame, path)
    frame.attrs["problems"] = msgspec.to_builtins(unusable)
    if unusable:
        warnings.warn(f"{path}: {unusable.summary()}", HarnessWarning, stacklevel=3)
    if frame.empty:
        text = f"There are no results in {path}. {ADVICE}"
        if conditions:
            text = f"No row in {path} has {conditions}."
        warnings.warn(text, HarnessWarning, stacklevel=3)
    if problems is not None:
        problems.add(unusable)
    return frame


def _check_there(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"There are no results at {path}: it does not exist. {ADVICE}")


def latest_records(path: Path) -> dict[str, dict[str, Record]]:
    """Return the latest record of each process by case; warn of what could not be used.

    Raises:
        UsageError: there is no such path.
    """
    _check_there(path)
    problems = Problems()
    latest: dict[str, dict[str, Record]] = {}
    for file in record_files_of(path):
        for record in read_file(file, problems):
            latest.setdefault(record.key, {})[record.replicate] = record
    if problems:
        warnings.warn(f"{path}: {problems.summary()}", HarnessWarning, stacklevel=3)
    return latest


def record_files_of(path: Path) -> list[Path]:
    """Return the files of records in a results tree or one machine's folder, or the file itself."""
    return _sources(path)[0]


def frame_of(records: Iterable[Record]) -> pd.DataFrame:
    """Return the frame of records that are at hand; see :func:`load` for what is in it."""
    table = ProcessTable()
    table.take(records)
    return table.frame()


def _read(
    files: Sequence[Path], of_asv: Sequence[Path], where: Where, problems: Problems
) -> pd.DataFrame:
    table = ProcessTable()
    covered: set[asv_results.Origin] = set()
    for file in files:
        table.take(_wanted(read_file(file, problems), where, covered))
    own, foreign = table.frame(), asv_results.read(of_asv, covered, problems)
    filled = [part for part in (own, foreign) if len(part)]
    return pd.concat(filled, ignore_index=True) if len(filled) > 1 else (*filled, own)[0]


def _wanted(
    records: Iterable[Record], where: Where, covered: set[asv_results.Origin]
) -> Iterator[Record]:
    """Yield the records that `where` may hold, and note in `covered` what there are records of."""
    keys: set[str] = set()
    for record in records:
        if record.key not in keys:
            keys.add(record.key)
            flags = flags_of(bytes(record.environment))["xla_flags"]
            covered.add((record.machine, record.commit, record.workload, record.env, flags))
        if not where or where.may_hold(record):
            yield record


def damage(path: Path) -> tuple[int, list[Damage]]:
    """Return how many files of a results tree are read, and what of which cannot be used."""
    problems = Problems()
    of_records, of_asv = _sources(path)
    for file in of_records:
        for _ in read_file(file, problems):
            pass
    asv_results.read(of_asv, (), problems)
    return len(of_records) + len(of_asv), problems.files


def _sources(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of records and those of asv."""
    if path.is_file():
        return ([], [path]) if path.suffix == ".json" else ([path], [])
    is_machine = (path / "records").is_dir() or (path / "machine.json").exists()
    prefix = "" if is_machine else "*/"
    asv = [file for file in path.glob(f"{prefix}*.json") if file.name != "machine.json"]
    return sorted(path.glob(f"{prefix}records/*.jsonl")), sorted(asv)
