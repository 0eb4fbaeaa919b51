"""Write a frame to a file that other programs read."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pandas as pd


LISTS = ("samples", "calibrated_samples")
"""Columns that hold a list of floats in each row."""


def write(frame: pd.DataFrame, output: Path) -> None:
    """Write `frame` as CSV or Parquet, as the name's ending says; whole, or not at all.

    CSV holds lists as JSON, with null for NaN. Parquet columns have one type each, so an axis whose
    values are of several types becomes text there.

    Raises:
        UsageError: the ending is neither `.csv` nor `.parquet`.
        StoreError: the file cannot be written.
    """
    if output.suffix not in (".csv", ".parquet"):
        raise UsageError(f"{output} ends in {output.suffix!r}; expected .csv or .parquet.")
    scratch = ""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(suffix=output.suffix, dir=output.parent)
        os.close(handle)
        if output.suffix == ".csv":
            text = {name: frame[name].map(_json) for name in LISTS}
            frame.assign(**text).to_csv(scratch, index=False)
        else:
            _one_type_each(frame).to_parquet(scratch, index=False)
        os.chmod(scratch, 0o644)
        os.replace(scratch, output)
    except OSError as error:
        if scratch and os.path.exists(scratch):
            os.unlink(scratch)
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with "
            "--output."
        ) from error


def _json(values: list[float]) -> str:
    return json.dumps([None if math.isnan(value) else value for value in values])


def _one_type_each(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    for name in frame.columns:
        if name in LISTS or frame[name].dtype != object:
            continue
        present = frame[name].dropna()
        kinds = {type(value) for value in present}
        if len(kinds) > 1 or tuple in kinds:
            frame[name] = frame[name].map(str, na_action="ignore")
        else:
            frame[name] = frame[name].convert_dtypes()
    frame.attrs = {}
    return frame
