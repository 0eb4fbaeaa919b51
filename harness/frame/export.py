"""Write a frame to a file that other programs read, or to a folder that many nights fit into."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd

from harness.errors import UsageError
from harness.frame.frame import ORIGIN
from harness.frame.typed import plain
from harness.records.files import replaced
from harness.records.store import is_tree


def parquet(what: str) -> ModuleType:
    """Return :mod:`harness.frame.parquet`, which imports pyarrow.

    Raises:
        UsageError: pyarrow is not installed; the text begins with `what` needs it.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            f"{what} needs pyarrow, which is not installed: pip install 'jax-harness[parquet]'. A "
            "file that ends in .csv needs nothing."
        )
    return importlib.import_module("harness.frame.parquet")


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
        UsageError: the ending is neither `.csv` nor `.parquet`, a file stands where the folder
            would, or pyarrow is not installed.
        StoreError: the file cannot be written; those of a folder that were written are whole.
    """
    if is_dataset(output, partition):
        if output.is_file():
            raise UsageError(f"{output} is a file; a dataset is a folder. Choose another --output.")
        if is_tree(output):
            raise UsageError(f"{output} is a results tree. Choose another folder with --output.")
        written = parquet(f"{output}: a folder of Parquet files")
        groups = frame.groupby(ORIGIN, sort=False, dropna=False)
        for origin, rows in groups:
            file = written.place(dict(zip(ORIGIN, map(str, origin), strict=True)))
            rows = rows.sort_values("workload", kind="stable")
            with replaced(output / file, "wb") as handle:
                written.write(rows, handle)
        return groups.ngroups
    if output.suffix == ".parquet":
        written = parquet(f"{output}: Parquet")
        with replaced(output, "wb") as handle:
            written.write(frame, handle, with_axes=True)
    elif output.suffix == ".csv":
        with replaced(output) as handle:
            plain(frame).to_csv(handle, index=False)
    else:
        raise UsageError(
            f"{output} ends in {output.suffix!r}; expected .csv or .parquet, or a folder's name "
            "without ending."
        )
    return 1
