"""Write a frame to a file that other programs read."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import msgspec
import pandas as pd

from harness.errors import UsageError
from harness.frame.columns import LISTS
from harness.records.files import replaced
from harness.records.installation import command_for


def parquet(what: str) -> ModuleType:
    """Return :mod:`harness.frame.parquet`, which imports pyarrow.

    Raises:
        UsageError: pyarrow is not installed; the text begins with `what` needs it.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            f"{what} needs pyarrow, which is not installed: {command_for('parquet')}. A "
            "file that ends in .csv needs nothing."
        )
    return importlib.import_module("harness.frame.parquet")


def _text(cell: list[object]) -> str:
    return msgspec.json.encode(cell).decode()


def write(frame: pd.DataFrame, output: Path) -> None:
    """Write `frame` as CSV or Parquet, as the name's ending says: whole, or not at all.

    CSV holds lists as JSON, with null for NaN; Parquet holds lists.

    Raises:
        UsageError: the ending is neither `.csv` nor `.parquet`, or pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    if output.suffix == ".parquet":
        written = parquet(f"{output}: Parquet")
        with replaced(output, "wb") as handle:
            written.write(frame, handle)
    elif output.suffix == ".csv":
        with replaced(output) as handle:
            texts = {name: frame[name].map(_text) for name in LISTS}
            frame.assign(**texts).to_csv(handle, index=False)
    else:
        raise UsageError(
            f"--output {output}: expected a name that ends in .csv or .parquet, such as rows.csv."
        )
