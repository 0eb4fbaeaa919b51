"""Load what was measured into one tidy frame: a row per case and stage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from harness.errors import HarnessWarning, UsageError
from harness.frame import asv_results
from harness.frame.choose import LEFT_OUT, Where, choose_columns, first_look
from harness.frame.columns import AXES
from harness.frame.differences import warn_of_shared_names
from harness.frame.export import parquet
from harness.frame.frame import FLAGS, flags_of, long_frame
from harness.frame.process_values import ProcessTable
from harness.program.collector import gc_off
from harness.records.schema import Damage, Head, Problems, Record, plain_axes, read_file

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


Narrow = Callable[[pd.DataFrame], Mapping[str, Sequence[str]]]
"""Returns conditions on `machine` and `commit`, by a frame that has a row per case, the columns
:data:`INDEXED` and those of axes."""

INDEXED = (
    "commit", "jax", "jaxlib", "env", "machine", "target", "scenario", "night",
    "dirty", "effort", "python", "transform", "precision", *FLAGS,
)  # fmt: skip
"""Columns that an arm of a comparison may select on, besides axes."""


def narrowed(path: Path, narrow: Narrow) -> pd.DataFrame:
    """Return the rows of some machines or commits; the records of others are not decoded whole."""
    return _frame(path, Where(None), narrow=narrow)


def _frame(
    path: Path, conditions: Where, problems: Problems | None = None, narrow: Narrow | None = None
) -> pd.DataFrame:
    unusable = Problems()
    _check_there(path)
    with gc_off():  # it would go through all rows again and again, which hold no cycles
        if path.is_file() and path.suffix == ".parquet":
            frame: pd.DataFrame = conditions.of(parquet(f"{path}: Parquet").read(path))
        elif narrow:
            frame = _narrowed(*_sources(path), narrow, unusable)
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
    table, keys, covered = ProcessTable(), set[str](), set[asv_results.Origin]()

    def wanted(one: Head | Record) -> bool:
        if one.key not in keys:
            keys.add(one.key)
            covered.add(_origin(one))
        return not where or where.may_hold(one)

    for file in files:
        if where:
            table.take(read_file(file, problems, wanted))
        else:
            table.take(filter(wanted, read_file(file, problems)))
    return _joined(table.frame(), asv_results.read(of_asv, covered, problems))


def _narrowed(
    files: Sequence[Path], of_asv: Sequence[Path], narrow: Narrow, problems: Problems
) -> pd.DataFrame:
    covered, rows = set[asv_results.Origin](), dict[str, tuple[dict[str, Any], Mapping[str, Any]]]()
    places: dict[Path, tuple[set[tuple[str, str]], Problems]] = {}
    for file in files:
        own, unusable = places[file] = set(), Problems()

        def note(one: Head, own: set[tuple[str, str]] = own) -> bool:
            own.add((one.machine, one.commit))
            if one.key not in rows:
                covered.add(_origin(one))
                row = {name: getattr(one, name, "") for name in INDEXED}
                row.update(flags_of(bytes(one.environment)))
                rows[one.key] = row, plain_axes(one.axes)
            return False

        for _ in read_file(file, unusable, note):
            pass
    foreign = asv_results.read(of_asv, covered, problems)
    index = long_frame(rows.values(), INDEXED, ())
    where = Where(narrow(_joined(index, foreign.drop(columns=AXES))))
    machines, commits = (where.columns.get(name) for name in ("machine", "commit"))
    table = ProcessTable()
    for file, (own, unusable) in places.items():
        if any(
            (machines is None or machine in machines) and (commits is None or commit in commits)
            for machine, commit in own
        ):
            table.take(read_file(file, problems, where.may_hold if where else None))
        else:
            problems.add(unusable)
    return where.of(_joined(table.frame(), foreign))


def _joined(own: pd.DataFrame, foreign: pd.DataFrame) -> pd.DataFrame:
    filled = [part for part in (own, foreign) if len(part)]
    return pd.concat(filled, ignore_index=True) if len(filled) > 1 else (*filled, own)[0]


def _origin(one: Head | Record) -> asv_results.Origin:
    flags = flags_of(bytes(one.environment))["xla_flags"]
    return one.machine, one.commit, one.workload, one.env, flags


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
