"""A frame as a Parquet file: lists are Arrow's lists, and axes have columns of their own."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import StoreError
from harness.frame.columns import (
    AXES,
    COLUMNS,
    COUNT,
    JSON,
    MOMENT,
    NO_MOMENT,
    NUMBER,
    NUMBERS,
    TEXTS,
    decode_axes,
    is_missing,
    objects,
)
from harness.frame.frame import to_frame

_SEAL, _SEAL_BYTES = b"HF05%08x", 12
"""Before the footer, where no reader of Parquet looks: the layout's version, and the CRC-32 of all
other bytes."""

_KINDS = {
    MOMENT: pa.timestamp("ms", "UTC"),
    NUMBER: pa.float64(),
    COUNT: pa.int64(),
    NUMBERS: pa.list_(pa.float64()),
    TEXTS: pa.list_(pa.string()),
}


def write(frame: pd.DataFrame, handle: IO[bytes]) -> None:
    """Write a frame as a Parquet file."""
    columns: dict[str, Any] = {}
    for name, kind in COLUMNS.items():
        # NaN in a list stays what it is; a number that nobody knows is null to other programs.
        values = frame[name].tolist() if kind in (NUMBERS, TEXTS) else frame[name]
        columns[name] = pa.array(values, _KINDS.get(kind, pa.string()))
    for name in frame.columns:
        if name not in COLUMNS:
            columns[str(name)] = _axis(frame[name])
    written = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), written, compression="zstd")
    data = written.getvalue().to_pybytes()
    end = _footer(data)
    for part in (data[:end], _SEAL % zlib.crc32(data), data[end:]):
        handle.write(part)


def _axis(values: pd.Series[Any]) -> pa.Array:
    """Return an axis in one type; what has several, or tuples, is text."""
    cells = [None if is_missing(cell) else cell for cell in values]
    try:
        column = pa.array(cells)
    except (pa.ArrowException, OverflowError):
        column = None
    if column is None or pa.types.is_nested(column.type):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return column


def read(path: Path) -> pd.DataFrame:
    """Return the frame that :func:`write` wrote.

    Raises:
        StoreError: the file cannot be read, is damaged, or was written by another program.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    end = _footer(data)
    whole = data[: end - _SEAL_BYTES] + data[end:]
    if end < _SEAL_BYTES or data[end - _SEAL_BYTES : end] != _SEAL % zlib.crc32(whole):
        raise StoreError(
            f"{path} is damaged, or this version of `harness export` did not write it. Export the "
            "results again."
        )
    table = pq.read_table(pa.BufferReader(data), columns=list(COLUMNS))
    columns = {name: _cells(kind, table[name]) for name, kind in COLUMNS.items()}
    codes, texts = pd.factorize(objects(columns.pop(AXES)))
    return to_frame(columns, [decode_axes(text) for text in texts], codes)


def _footer(data: bytes) -> int:
    """Return where the footer begins, by the length behind it; below 0 where that is nonsense."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _cells(kind: str, column: pa.ChunkedArray) -> Any:
    if kind == MOMENT:
        return column.cast(pa.int64()).fill_null(NO_MOMENT).to_numpy()
    if kind in (NUMBER, COUNT):
        return column.fill_null(math.nan if kind == NUMBER else 0).to_numpy()
    cells = column.to_pylist()
    if kind == JSON:  # rows share one long text
        shared: dict[str, str] = {}
        cells = [shared.setdefault(text, text) for text in cells]
    return np.fromiter(cells, dtype=object)
