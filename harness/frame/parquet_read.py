"""Read frames from Parquet: only the files, row groups and columns that are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from harness.errors import StoreError
from harness.frame import axes_text
from harness.frame.frame import COLUMNS, MOMENT, NO_MOMENT, TEXT, objects, series
from harness.frame.parquet_layout import AXES, MARK, SCHEMA, VERSION
from harness.frame.where import LISTS, Where, check_axes

_FOLDERS = pa.schema([("machine", pa.string()), ("night", pa.string())])
_ORDER = ("machine", "commit_date", "commit", "env")
"""What files are ordered by, as the rows of a results tree are."""


def is_parquet(path: Path) -> bool:
    """Return whether `path` is a Parquet file, or a dataset that `harness export` wrote."""
    if path.is_file():
        return path.suffix == ".parquet"
    return not is_tree(path) and _any(path, "machine=*", "night=*", "*.parquet")


def is_tree(path: Path) -> bool:
    """Return whether `path` is a results tree, or one machine's folder in it."""
    return _any(path, "records", "machine.json", "*/records", "*/machine.json")


def _any(path: Path, *kinds: str) -> bool:
    return any(any(path.glob(kind)) for kind in kinds)


def read(path: Path, where: Where, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows that meet `where`; columns in the order of a frame.

    Raises:
        UsageError: a condition is on an axis that there is not.
        StoreError: a file that is needed is damaged, foreign, or of another version.
    """
    dataset = _needed(path, where)
    wanted = _wanted(where, columns)
    try:
        batches = list(_batches(dataset, where, wanted))
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path} cannot be read: {_line(error)}. Export it again.") from error
    if path.is_dir():
        batches.sort(key=_place)
    table = pa.Table.from_batches(batches, pa.schema([SCHEMA.field(name) for name in wanted]))
    del batches
    return _to_frame(table, columns)


def _needed(path: Path, where: Where) -> ds.FileSystemDataset:
    """Return the dataset of the files that may hold rows; each is proven to be ours."""
    dataset = ds.dataset(
        str(path),
        schema=SCHEMA,
        format="parquet",
        partitioning=ds.partitioning(_FOLDERS, flavor="hive"),
        exclude_invalid_files=False,
    )
    # Only the names of folders decide here: no file is opened. One with the metadata at hand is not
    # opened again for it.
    fragments = list(dataset.get_fragments(where.expression()))
    for fragment in fragments:
        _check(fragment)
    return ds.FileSystemDataset(fragments, SCHEMA, dataset.format, dataset.filesystem)


def _check(fragment: ds.ParquetFileFragment) -> None:
    try:
        found = (fragment.physical_schema.metadata or {}).get(MARK)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{fragment.path} is no whole Parquet file ({_line(error)}). Delete it, and export "
            "again."
        ) from error
    if found is None:
        raise StoreError(f"{fragment.path} holds no frame that `harness export` wrote.")
    if found != str(VERSION).encode():
        raise StoreError(
            f"{fragment.path} is of version {found.decode(errors='replace')} of the layout; this "
            f"harness reads {VERSION}. Export the results again, to another place."
        )


def _line(error: Exception) -> str:
    """Return what pyarrow says, which may be several lines, as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def _wanted(where: Where, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(SCHEMA.names)
    chosen = {*columns, *_ORDER}
    with_axes = bool(where.axes) or any(name not in COLUMNS for name in columns)
    return [name for name in SCHEMA.names if name in chosen or (name == AXES and with_axes)]


def _batches(dataset: ds.FileSystemDataset, where: Where, wanted: list[str]) -> Iterator[Any]:
    scanner = dataset.scanner(columns=wanted, filter=where.expression())
    known: dict[str, dict[str, Any]] = {}
    for batch in scanner.to_batches():
        if where.axes and batch.num_rows:
            column = batch.column(AXES)
            distinct = _decoded(column.dictionary.to_pylist(), known)
            keep = np.array([where.has_axes(axes) for axes in distinct], bool)
            batch = batch.filter(pa.array(keep[column.indices.to_numpy()]))
        if batch.num_rows:
            yield batch
    if known:
        check_axes(where.axes, {*COLUMNS, *(name for axes in known.values() for name in axes)})


def _decoded(texts: Iterable[str], known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    for text in texts:
        if text not in known:
            known[text] = axes_text.decode(text)
    return [known[text] for text in texts]


def _place(batch: pa.RecordBatch) -> tuple[Any, ...]:
    """Return what to order batches by; those of one file, which is of one origin, are equal."""
    machine, date, commit, env = (batch.column(name)[0] for name in _ORDER)
    moment = date.value if date.is_valid else NO_MOMENT
    return machine.as_py(), moment, commit.as_py(), env.as_py()


def _to_frame(table: pa.Table, columns: Sequence[str] | None) -> pd.DataFrame:
    data: dict[str, Any] = {}
    for name in table.column_names:
        column, table = table[name], table.drop_columns([name])
        if name == AXES:
            data |= _axis_columns(column)
        elif columns is None or name in columns:
            data[name] = _series(name, column)
    return pd.DataFrame(data)


def _series(name: str, column: pa.ChunkedArray) -> pd.Series[Any]:
    kind = COLUMNS[name]
    if name in LISTS:
        return series(kind, [np.empty(0, object), *map(_lists, column.chunks)])
    if kind == TEXT:
        found = column.cast(pa.string()).to_pandas()
        return found.astype("str")  # type: ignore[no-any-return]
    if pa.types.is_dictionary(column.type):
        texts, codes = _coded(column)
        return series(kind, [objects(texts)[codes]])
    if kind == MOMENT:
        column = column.cast(pa.int64()).fill_null(NO_MOMENT)
    elif pa.types.is_floating(column.type):
        column = column.fill_null(math.nan)
    return series(kind, [column.to_numpy()])


def _lists(chunk: pa.ListArray) -> np.ndarray[Any, Any]:
    """Return an array of lists, made for all lists of one length at once."""
    ends = chunk.offsets.to_numpy()
    values = chunk.values.to_numpy(zero_copy_only=False)
    begins, lengths = ends[:-1], np.diff(ends)
    found = np.empty(len(chunk), object)
    for length in np.unique(lengths).tolist():
        at = np.flatnonzero(lengths == length)
        members = begins[at][:, None] + np.arange(length)
        found[at] = objects(values[members].tolist())
    return found


def _coded(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the distinct texts of a dictionary column, and the number of each row's."""
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return [], np.empty(0, np.int64)
    texts = column.chunk(0).dictionary.to_pylist()
    return texts, np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])


def _axis_columns(column: pa.ChunkedArray) -> dict[str, pd.Series[Any]]:
    texts, codes = _coded(column)
    distinct = _decoded(texts, {})
    # A dictionary may hold texts that no row that is left uses; rows decide the order of columns.
    used, first = np.unique(codes, return_index=True)
    names: dict[str, None] = {}
    for number in used[np.argsort(first)].tolist():
        names |= dict.fromkeys(distinct[number])
    return {
        name: series("object", [objects(axes.get(name, math.nan) for axes in distinct)[codes]])
        for name in names
    }
