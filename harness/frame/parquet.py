"""Frames as Parquet: one file, or a folder of files that pyarrow reads as one dataset.

The folder is partitioned as `machine=M/night=N/` (hive) with a file per origin, so that a new night
leaves the others alone and one that is written again replaces its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from harness.errors import StoreError
from harness.frame.choose import Where, check_axes
from harness.frame.columns import (
    AXES,
    COLUMNS,
    COUNT,
    DTYPES,
    JSON,
    LISTS,
    MOMENT,
    NO_MOMENT,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    decode_axes,
    objects,
)
from harness.frame.frame import ORIGIN, Array, axis_values, series
from harness.frame.typed import list_text, plain
from harness.records.schema import digest

MARK, VERSION = b"harness_frame", b"3"
"""What a file's metadata say of its columns; a reader refuses files of versions it does not know.
Those of version 1 have lists where later ones have JSON text; from 3 on the file has checksums."""

_SEAL, _SEAL_BYTES = b"HCRC%08x", 12
"""Before the footer, where no reader of Parquet looks: its CRC-32, and in front of it, as 8 digits
each, those of the row groups. Parquet's own are of pages without their heads."""

GROUP_ROWS = 1_000
"""Rows that are read together: fewer are read faster by a filter, more are opened faster."""

_KINDS = {MOMENT: pa.timestamp("ms", "UTC"), NUMBER: pa.float64(), COUNT: pa.int64()}
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_SHARED = [name for name, kind in COLUMNS.items() if kind == JSON]
"""Long texts that many rows share: read once each."""

_TYPES = {name: _KINDS.get(kind, pa.string()) for name, kind in COLUMNS.items()}
_SCHEMA = pa.schema(_TYPES | dict.fromkeys(_SHARED, _DICTIONARY), {MARK: VERSION})
# Programs that make columns of the folders' names take them for dictionaries.
_WRITTEN = pa.schema(_TYPES | dict.fromkeys(("machine", "night"), _DICTIONARY), {MARK: VERSION})
_SCHEMA_1 = pa.schema(
    [
        field.with_type(pa.list_(pa.float64() if COLUMNS[field.name] == NUMBERS else pa.string()))
        if field.name in LISTS
        else field
        for field in _SCHEMA
    ]
)
_READ = {b"1": _SCHEMA_1, b"2": _SCHEMA, VERSION: _SCHEMA}
_PRUNE_BY = [name for name, kind in COLUMNS.items() if kind in (TEXT, MOMENT)]
_FORMAT = ds.ParquetFileFormat(
    dictionary_columns=_SHARED,
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
)
_FOLDERS = ds.partitioning(pa.schema({"machine": pa.string(), "night": pa.string()}), flavor="hive")
_ORDER = ("machine", "commit_date", "commit", "env")


def write(frame: pd.DataFrame, handle: IO[bytes], with_axes: bool = False) -> None:
    """Write a frame as a Parquet file; `with_axes` adds the columns of axes for other programs."""
    frame = plain(frame)
    arrays = []
    for field in _WRITTEN:
        if field.type == _DICTIONARY:
            text = pa.array(frame[field.name].astype("str"), pa.string(), from_pandas=True)
            arrays.append(text.dictionary_encode())
        else:
            arrays.append(pa.array(frame[field.name], field.type, from_pandas=True))
    table = pa.Table.from_arrays(arrays, schema=_WRITTEN)
    for name in frame.columns if with_axes else ():
        if name not in COLUMNS:
            table = table.append_column(name, pa.array(frame[name], from_pandas=True))
    whole = pa.BufferOutputStream()
    pq.write_table(
        table,
        whole,
        row_group_size=GROUP_ROWS,
        compression="zstd",
        use_dictionary=[n for n, kind in COLUMNS.items() if kind in (TEXT, TEXTS, JSON)],
        write_statistics=_PRUNE_BY,
        write_page_checksum=True,
    )
    written = whole.getvalue()
    data = memoryview(written)
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    ends = (*_group_starts(pq.read_metadata(pa.BufferReader(written))), end)
    groups = [b"%08x" % zlib.crc32(data[begin:stop]) for begin, stop in itertools.pairwise(ends)]
    for part in (data[:end], b"".join(groups), _SEAL % zlib.crc32(data[end:]), data[end:]):
        handle.write(part)


def _group_starts(footer: pq.FileMetaData) -> list[int]:
    """Return where each row group begins; the first with the file, whatever the group has."""
    firsts = [footer.row_group(number).column(0) for number in range(footer.num_row_groups)]
    starts = [one.dictionary_page_offset or one.data_page_offset for one in firsts]
    return [0, *starts[1:]]


def _is_whole(fragment: ds.ParquetFileFragment, condition: pc.Expression | None) -> bool | None:
    """Return whether the checksums hold, of row groups those that may meet the condition.

    None where a file has none.
    """
    with open(fragment.path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        end = size - 8 - int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - _SEAL_BYTES))
        seal = file.read(_SEAL_BYTES)
        if not seal.startswith(_SEAL[:4]):
            return None
        if seal != _SEAL % zlib.crc32(file.read()):
            return False
        starts = _group_starts(fragment.metadata)
        ends = (*starts, end - _SEAL_BYTES - 8 * len(starts))
        file.seek(ends[-1])
        sums = [file.read(8) for _ in starts]
        for group in (fragment if condition is None else fragment.subset(condition)).row_groups:
            begin, stop = ends[group.id : group.id + 2]
            file.seek(begin)
            if sums[group.id] != b"%08x" % zlib.crc32(file.read(stop - begin)):
                return False
    return True


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
    fragments: dict[pa.Schema, list[ds.ParquetFileFragment]] = {}
    for fragment in whole.get_fragments(condition):
        fragments.setdefault(_schema_of(fragment, condition), []).append(fragment)
    try:
        batches = [
            _with_texts(batch)
            for schema, own in fragments.items()
            for batch in _batches(
                ds.FileSystemDataset(own, schema, _FORMAT, whole.filesystem).scanner(
                    columns=wanted, filter=condition
                ),
                where,
            )
        ]
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


def _schema_of(fragment: ds.ParquetFileFragment, condition: pc.Expression | None) -> pa.Schema:
    """Return what a file is read as; raise :class:`StoreError` unless it is whole, and ours.

    Of what may not meet the condition nothing is read.
    """
    try:
        version = (fragment.physical_schema.metadata or {}).get(MARK)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{fragment.path} is no whole Parquet file ({_line(error)}). Delete it, and export "
            "again."
        ) from error
    closed = _is_whole(fragment, condition)
    if closed is False or (closed is None and version == VERSION):
        what = "missing" if closed is None else "wrong"
        raise StoreError(
            f"{fragment.path} is damaged: its checksum is {what}. Delete it, and export again."
        )
    if version is None:
        raise StoreError(f"{fragment.path} holds no frame that `harness export` wrote.")
    if version not in _READ:
        raise StoreError(
            f"{fragment.path} is of version {version.decode(errors='replace')} of the layout; this "
            f"harness reads 1 to {VERSION.decode()}. Export the results again, to another place."
        )
    return _READ[version]


def _line(error: Exception) -> str:
    """Return what pyarrow says, which may be several lines, as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def _batches(scanner: ds.Scanner, where: Where) -> Iterator[pa.RecordBatch]:
    known: dict[str, None] = {}
    for batch in scanner.to_batches():
        if where.axes and batch.num_rows:
            texts, codes = _distinct(batch.column(AXES))
            axes = list(map(decode_axes, texts))
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
    if kind == JSON and name != AXES:  # rows share one text
        texts, codes = _distinct(column)
        return series(kind, objects(texts)[codes])
    if name in LISTS:
        column = column.fill_null("[]")
    if DTYPES[kind] == "str":
        return column.cast(pa.string()).to_pandas().astype("str")  # type: ignore[no-any-return]
    if kind == MOMENT:
        column = column.cast(pa.int64()).fill_null(NO_MOMENT)
    elif kind == NUMBER:
        column = column.fill_null(math.nan)
    return series(kind, column.to_numpy())


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of version 1 with JSON text in place of lists; one of version 2 as it is."""
    for field in batch.schema:
        if pa.types.is_list(field.type):
            texts = map(list_text, batch.column(field.name).to_pylist())
            at = batch.schema.get_field_index(field.name)
            batch = batch.set_column(at, field.name, pa.array(texts, pa.string()))
    return batch


def _distinct(column: Any) -> tuple[list[str], Array]:
    """Return the distinct texts of a dictionary column, and the number of each row's."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary.to_pylist(), column.indices.to_numpy()


def _axis_columns(column: pa.ChunkedArray) -> dict[str, Array]:
    texts, codes = _distinct(column)
    # A dictionary may hold texts that no row that is left uses; rows decide the order of columns.
    codes, used = pd.factorize(codes)
    return axis_values([decode_axes(texts[number]) for number in used], codes)
