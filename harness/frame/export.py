"""Write a frame to a file that other programs read, or to a folder that many nights fit into."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from harness.errors import StoreError, UsageError
from harness.frame import parquet
from harness.frame.frame import LISTS, ORIGIN


def is_tree(path: Path) -> bool:
    """Return whether `path` is a results tree, or one machine's folder in it."""
    kinds = ("records", "machine.json", "*/records", "*/machine.json")
    return any(any(path.glob(kind)) for kind in kinds)


def is_dataset(output: Path, partition: bool) -> bool:
    """Return whether rows go to a folder: told so, or its name has no ending, or it is one."""
    return partition or output.is_dir() or not output.suffix


def write(frame: pd.DataFrame, output: Path, *, partition: bool = False) -> int:
    """Write `frame` as CSV or Parquet, as the name's ending says, or as a folder of Parquet files.

    A file is written whole, or not at all. CSV holds lists as JSON, with null for NaN. A folder
    gets a file per origin (:data:`harness.frame.frame.ORIGIN`); its other files stay as they are.

    Returns:
        How many files were written.

    Raises:
        UsageError: the ending is neither `.csv` nor `.parquet`, or a file stands where the folder
            would.
        StoreError: the file cannot be written; those of a folder that were written are whole.
    """
    if is_dataset(output, partition):
        if output.is_file():
            raise UsageError(f"{output} is a file; a dataset is a folder. Choose another --output.")
        if is_tree(output):
            raise UsageError(f"{output} is a results tree. Choose another folder with --output.")
        groups = frame.groupby(ORIGIN, sort=False, dropna=False)
        for origin, rows in groups:
            file = parquet.place(dict(zip(ORIGIN, map(str, origin), strict=True)))
            rows = rows.sort_values("workload", kind="stable")
            _whole_file(output / file, lambda scratch, rows=rows: parquet.write(rows, scratch))  # type: ignore[misc]
        return groups.ngroups
    if output.suffix == ".parquet":
        _whole_file(output, lambda scratch: parquet.write(frame, scratch, with_axes=True))
    elif output.suffix == ".csv":
        lines = frame.assign(**{name: frame[name].map(_json) for name in LISTS})
        _whole_file(output, lambda scratch: lines.to_csv(scratch, index=False))
    else:
        raise UsageError(
            f"{output} ends in {output.suffix!r}; expected .csv or .parquet, or a folder's name "
            "without ending."
        )
    return 1


def _json(values: list[float]) -> str:
    return json.dumps([None if math.isnan(value) else value for value in values])


def _whole_file(output: Path, write_to: Callable[[str], Any]) -> None:
    """Let `write_to` fill a scratch file beside `output`, put in its place when it is whole."""
    scratch = ""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        # The dot hides what a writer that was killed leaves behind from readers of the folder.
        handle, scratch = tempfile.mkstemp(".part", ".", output.parent)
        os.close(handle)
        write_to(scratch)
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
