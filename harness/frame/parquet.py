"""Frames as Parquet: one file, or a folder of files that pyarrow reads as one dataset.

The folder is partitioned as `machine=M/night=N/` (hive) with a file per origin, so that a new night
leaves the others alone and one that is written again replaces its own.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from harness.errors import StoreError
from harness.frame import axes_text
from harness.frame.choose import Where, check_axes
from harness.frame.frame import (
    AXES,
    COLUMNS,
    COUNT,
    LISTS,
    MOMENT,
    NO_MOMENT,
    NUMBER,
    ORIGIN,
    TEXT,
    TEXT_LISTS,
    axis_column,
    axis_columns,
    objects,
    series,
)
from harness.records.schema import digest

MARK, VERSION = b"harness_frame", b"1"
"""What a file's metadata say of its columns; a reader refuses files of any other version."""

GROUP_ROWS = 1_000
"""Rows that are read together: fewer are read faster by a filter, more are opened faster."""

_KINDS = {
    TEXT: pa.string(),
    MOMENT: pa.timestamp("ms", "UTC"),
    NUMBER: pa.float64(),
    COUNT: pa.int64(),
}
_LONG_TEXT = ("environment", "reason", "labels", AXES)
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    {
        **{name: _KINDS.get(kind, _DICTIONARY) for name, kind in COLUMNS.items()},
        **dict.fromkeys(_LONG_TEXT, _DICTIONARY),
        **dict.fromkeys(LISTS, pa.list_(pa.float64())),
        **dict.fromkeys(TEXT_LISTS, pa.list_(pa.string())),
    },
    metadata={MARK: VERSION},
)
_PRUNE_BY = [name for name, kind in COLUMNS.items() if kind in (TEXT, MOMENT)]
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
_FOLDERS = ds.partitioning(pa.schema({"machine": pa.string(), "night": pa.string()}), flavor="hive")
_ORDER = ("machine", "commit_date", "commit", "env")


def write(frame: pd.DataFrame, handle: IO[bytes], with_axes: bool = False) -> None:
    """Write a frame as a Parquet file; `with_axes` adds a column per axis for other programs."""
    table = _to_table(frame)
    if with_axes:
        for name in axis_columns(frame):
            column = axis_column(name, _SCHEMA.names)
            table = table.append_column(column, _of_one_type(frame[name]))
    pq.write_table(
        table,
        handle,
        row_group_size=GROUP_ROWS,
        compression="zstd",
        use_dictionary=[*(n for n, kind in COLUMNS.items() if kind == TEXT), "environment", AXES],
        write_statistics=_PRUNE_BY,
        write_page_checksum=True,
    )


def place(origin: dict[str, str]) -> Path:
    """Return where the rows of an origin stand in a folder."""
    name = "-".join([origin["commit"][:8] or "nocommit", origin["env"], origin["effort"]])
    safe = re.sub(r"[^\w.+-]+", "_", name)[:60].lstrip("._-")
    identity = digest(*(origin[column] for column in ORIGIN))
    # Encoded as in addresses on the web, which readers undo. Letters of any script stay: encoded, a
    # name in Arabic would soon be longer than a file system takes.
    machine, night = (
        re.sub(r"[\x00-\x2c/:-@\[-\^`{-\x7f]", lambda one: quote(one[0], safe=""), origin[name])
        for name in ("machine", "night")
    )
    return Path(f"machine={machine}", f"night={night}", f"{safe}-{identity}.parquet")


def _to_table(frame: pd.DataFrame) -> pa.Table:
    """Return the columns that every frame has and the axes as JSON; NaN is null but in lists."""
    names = axis_columns(frame)
    texts: dict[tuple[str, ...], str] = {}
    axes = []
    for values in zip(*(frame[name] for name in names), strict=True) if names else ():
        key = tuple(map(repr, values))
        if key not in texts:
            texts[key] = axes_text.encode(dict(zip(names, values, strict=True)))
        axes.append(texts[key])
    columns: dict[str, Any] = {
        **{name: frame[name] for name in COLUMNS if name != AXES},
        AXES: axes or ["{}"] * len(frame),
    }
    arrays = []
    for field in _SCHEMA:
        if pa.types.is_list(field.type):
            arrays.append(pa.array(list(columns[field.name]), field.type))
        elif field.type == _DICTIONARY:
            text = pa.array(columns[field.name], pa.string(), from_pandas=True)
            arrays.append(text.dictionary_encode())
        else:
            arrays.append(pa.array(columns[field.name], field.type, from_pandas=True))
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _of_one_type(column: pd.Series[Any]) -> pa.Array:
    """Return an axis for other programs: as text, where its values are of several types."""
    values = column.astype(object)
    known = values[~values.isna()]
    if {type(value) for value in known} in ({bool}, {int}, {float}):
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, OverflowError):  # integers beyond 64 bits
            pass
    return pa.array(known.map(str).reindex(values.index), pa.string(), from_pandas=True)


def read(path: Path, where: Where, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows that meet `where`, from the files, row groups and columns that are needed.

    Raises:
        UsageError: a condition is on an axis that there is not.
        StoreError: a file that is needed is damaged, foreign, or of another version.
    """
    # `isin` of no values has no type, and would match what is null.
    tests = [
        ds.field(name).isin(values) if values else ds.scalar(False)
        for name, values in where.columns.items()
    ]
    condition = functools.reduce(operator.and_, tests) if tests else None
    wanted = list(_SCHEMA.names)
    if columns is not None:
        with_axes = bool(where.axes) or any(name not in COLUMNS for name in columns)
        chosen = {*columns, *_ORDER, *([AXES] if with_axes else [])}
        wanted = [name for name in wanted if name in chosen]
    whole = ds.dataset(path, _SCHEMA, _FORMAT, partitioning=_FOLDERS, exclude_invalid_files=False)
    # Only the names of folders decide here: no file is opened.
    fragments = list(whole.get_fragments(condition))
    for fragment in fragments:
        _check(fragment)
    needed = ds.FileSystemDataset(fragments, _SCHEMA, _FORMAT, whole.filesystem)
    try:
        batches = list(_batches(needed.scanner(columns=wanted, filter=condition), where))
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path} cannot be read: {_line(error)}. Export it again.") from error
    if path.is_dir():  # those of one file, which is of one origin, stay together
        batches.sort(key=_order)
    table = pa.Table.from_batches(batches, pa.schema([_SCHEMA.field(name) for name in wanted]))
    del batches
    frame, axes = dict[str, Any](), dict[str, Any]()
    for name in wanted:
        column, table = table[name], table.drop_columns([name])  # what is converted is let go
        if name == AXES:
            axes = _axis_columns(column)
        if columns is None or name in columns:
            frame[name] = _series(name, column)
    return pd.DataFrame(frame | axes)


def _check(fragment: ds.ParquetFileFragment) -> None:
    """Raise :class:`StoreError` unless a file is whole, and ours."""
    try:
        version = (fragment.physical_schema.metadata or {}).get(MARK)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{fragment.path} is no whole Parquet file ({_line(error)}). Delete it, and export "
            "again."
        ) from error
    if version is None:
        raise StoreError(f"{fragment.path} holds no frame that `harness export` wrote.")
    if version != VERSION:
        raise StoreError(
            f"{fragment.path} is of version {version.decode(errors='replace')} of the layout; this "
            f"harness reads {VERSION.decode()}. Export the results again, to another place."
        )


def _line(error: Exception) -> str:
    """Return what pyarrow says, which may be several lines, as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def _batches(scanner: ds.Scanner, where: Where) -> Iterator[pa.RecordBatch]:
    known: dict[str, None] = {}
    for batch in scanner.to_batches():
        if where.axes and batch.num_rows:
            texts, codes = _distinct(batch.column(AXES))
            axes = list(map(axes_text.decode, texts))
            known |= dict.fromkeys(name for one in axes for name in one)
            keep = np.array([where.has_axes(one) for one in axes], bool)
            batch = batch.filter(pa.array(keep[codes]))
        if batch.num_rows:
            yield batch
    if known:
        check_axes(where.axes, {*COLUMNS, *known})


def _order(batch: pa.RecordBatch) -> tuple[Any, ...]:
    machine, date, commit, env = (batch.column(name)[0] for name in _ORDER)
    return machine.as_py(), date.value if date.is_valid else NO_MOMENT, commit.as_py(), env.as_py()


def _series(name: str, column: pa.ChunkedArray) -> pd.Series[Any]:
    kind = COLUMNS[name]
    if name in LISTS:
        return series(kind, [_lists(chunk) for chunk in column.chunks])
    if kind == TEXT:
        return column.cast(pa.string()).to_pandas().astype("str")  # type: ignore[no-any-return]
    if name in _LONG_TEXT:  # rows share one text
        texts, codes = _distinct(column)
        return series(kind, [objects(texts)[codes]])
    if kind == MOMENT:
        column = column.cast(pa.int64()).fill_null(NO_MOMENT)
    elif kind == NUMBER:
        column = column.fill_null(math.nan)
    return series(kind, [column.to_numpy()])


def _lists(chunk: pa.ListArray) -> np.ndarray[Any, Any]:
    """Return an array of lists, made for all lists of one length at once."""
    ends, values = chunk.offsets.to_numpy(), chunk.values
    if pa.types.is_string(values.type):  # rows share one text
        texts, codes = _distinct(values.dictionary_encode())
        values = objects(texts)[codes]
    else:
        values = values.to_numpy(zero_copy_only=False)
    lengths = np.diff(ends)
    lists = np.empty(len(chunk), object)
    for length in np.unique(lengths).tolist():
        at = np.flatnonzero(lengths == length)
        lists[at] = objects(values[ends[at][:, None] + np.arange(length)].tolist())
    return lists


def _distinct(column: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the distinct texts of a dictionary column, and the number of each row's."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary.to_pylist(), column.indices.to_numpy()


def _axis_columns(column: pa.ChunkedArray) -> dict[str, pd.Series[Any]]:
    texts, codes = _distinct(column)
    axes = list(map(axes_text.decode, texts))
    # A dictionary may hold texts that no row that is left uses; rows decide the order of columns.
    used = [axes[number] for number in dict.fromkeys(codes.tolist())]
    return {
        name: series("object", [objects(one.get(name, math.nan) for one in axes)[codes]])
        for name in dict.fromkeys(name for one in used for name in one)
    }
