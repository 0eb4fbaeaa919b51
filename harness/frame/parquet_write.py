"""Write frames as Parquet: one file, or a folder with a file per machine and origin.

The folder is a dataset in the layout that is known as hive: `machine=M/night=N/ORIGIN.parquet`. An
origin (:data:`harness.frame.choose.ORIGIN`) is written whole to a file of its own, so that a new
night leaves the other nights' files alone, and one that is written again replaces its file. Rows of
a file are sorted by workload, and no row group begins or ends within one.

pyarrow.dataset would write such a folder too, but in place and with row groups of fixed length.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import StoreError
from harness.frame.choose import ORIGIN
from harness.frame.frame import COLUMNS, MOMENT, TEXT
from harness.frame.parquet_layout import AXES, to_table, with_axis_columns
from harness.records.schema import digest

if TYPE_CHECKING:
    import pandas as pd

GROUP_ROWS = 1_000
"""A row group ends with the workload in which it reaches this length.

A filter on a workload reads whole row groups, and each costs what 50 columns cost to open: shorter
ones are read faster and longer ones opened faster.
"""

MOST_GROUP_ROWS = 100_000
"""Longer row groups would have to be held in memory whole."""

_TEXT_COLUMNS = [*(name for name, kind in COLUMNS.items() if kind == TEXT), "environment", AXES]

_PRUNE_BY = [name for name, kind in COLUMNS.items() if kind in (TEXT, MOMENT)]
"""Columns with statistics; those of the many numbers would make files slower to open."""


def write_file(frame: pd.DataFrame, output: Path) -> None:
    """Write all rows, and a column per axis, to one file; whole, or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    table = with_axis_columns(to_table(frame), frame)
    whole_file(output, lambda scratch: _write(table, scratch))


def write_dataset(frame: pd.DataFrame, folder: Path) -> list[Path]:
    """Write a file for each origin in the frame and return them; other files stay as they are.

    Raises:
        StoreError: a file cannot be written; those written before are whole.
    """
    written = []
    for origin, rows in frame.groupby(ORIGIN, sort=False, dropna=False):
        path = folder / place(dict(zip(ORIGIN, map(str, origin), strict=True)))
        table = to_table(rows.sort_values("workload", kind="stable"))
        whole_file(path, lambda scratch, table=table: _write(table, scratch))  # type: ignore[misc]
        written.append(path)
    return written


def place(origin: dict[str, str]) -> Path:
    """Return where the rows of an origin stand in a dataset."""
    name = "-".join([origin["commit"][:8] or "nocommit", origin["env"], origin["effort"]])
    safe = re.sub(r"[^\w.+-]+", "_", name)[:60].lstrip("._-")
    identity = digest(*(origin[column] for column in ORIGIN))
    return Path(
        f"machine={_segment(origin['machine'])}",
        f"night={_segment(origin['night'])}",
        f"{safe}-{identity}.parquet",
    )


def _segment(text: str) -> str:
    """Return text as a part of a path, encoded as in addresses on the web, which readers undo.

    Letters of any script stay: encoded, a name in Arabic would soon be longer than a file system
    takes.
    """
    return re.sub(r"[\x00-\x2c/:-@\[-\^`{-\x7f]", lambda found: quote(found[0], safe=""), text)


def _write(table: pa.Table, path: str) -> None:
    texts = [name for name in _TEXT_COLUMNS if name in table.column_names]
    options = {"compression": "zstd", "use_dictionary": texts, "write_statistics": _PRUNE_BY}
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for begin, end in _groups(table["workload"]):
            writer.write_table(table.slice(begin, end - begin), row_group_size=MOST_GROUP_ROWS)


def _groups(workloads: pa.ChunkedArray) -> Iterator[tuple[int, int]]:
    """Yield where row groups begin and end."""
    names = workloads.to_numpy(zero_copy_only=False)
    last = len(names)
    borders = [*(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), last]
    begin = 0
    for end in borders:
        if end - begin >= GROUP_ROWS or end == last:
            yield begin, end
            begin = end


def whole_file(output: Path, write: Callable[[str], Any]) -> None:
    """Let `write` fill a scratch file beside `output`, and put it in its place when it is whole.

    Raises:
        StoreError: it cannot be written.
    """
    scratch = ""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        # The dot hides what a writer that was killed leaves behind from readers of the folder.
        handle, scratch = tempfile.mkstemp(".part", ".", output.parent)
        os.close(handle)
        write(scratch)
        os.chmod(scratch, 0o644)
        os.replace(scratch, output)
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with "
            "--output."
        ) from error
    finally:
        if scratch and os.path.exists(scratch):
            os.unlink(scratch)
