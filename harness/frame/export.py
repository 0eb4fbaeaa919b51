"""Write a frame to a file that other programs read, or to a dataset of many."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.frame.where import LISTS

if TYPE_CHECKING:
    import pandas as pd


def is_dataset(output: Path, partition: bool) -> bool:
    """Return whether rows go to a folder: told so, or its name has no ending, or it is one."""
    return partition or output.is_dir() or not output.suffix


def write(frame: pd.DataFrame, output: Path, *, partition: bool = False) -> int:
    """Write `frame` as CSV or Parquet, as the name's ending says, or as a folder of Parquet files.

    A file is written whole, or not at all. CSV holds lists as JSON, with null for NaN. Of Parquet
    see :mod:`harness.frame.parquet_layout`, of folders :mod:`harness.frame.parquet_write`.

    Returns:
        How many files were written.

    Raises:
        UsageError: the ending is neither `.csv` nor `.parquet`, or a file stands where the folder
            would.
        StoreError: the file cannot be written.
    """
    from harness.frame import parquet_read, parquet_write

    if is_dataset(output, partition):
        if output.is_file():
            raise UsageError(f"{output} is a file; a dataset is a folder. Choose another --output.")
        if parquet_read.is_tree(output):
            raise UsageError(f"{output} is a results tree. Choose another folder with --output.")
        return len(parquet_write.write_dataset(frame, output))
    if output.suffix not in (".csv", ".parquet"):
        raise UsageError(
            f"{output} ends in {output.suffix!r}; expected .csv or .parquet, or a folder's name "
            "without ending."
        )
    if output.suffix == ".parquet":
        parquet_write.write_file(frame, output)
    else:
        text = {name: frame[name].map(_json) for name in LISTS}
        lines = frame.assign(**text)
        parquet_write.whole_file(output, lambda scratch: lines.to_csv(scratch, index=False))
    return 1


def _json(values: list[float]) -> str:
    return json.dumps([None if math.isnan(value) else value for value in values])
