"""How long one workload of a large export takes to read, and how much memory: by whom.

Run it as `python -m tests.performance.parquet`: it writes 5 million rows, night by night, with the
export's own code, reads one workload of them in fresh processes with harness, pandas, Polars and
DuckDB (those that are installed), and prints the figures beside the target.
`--rows-per-night 4000` makes the same rows of many small nights.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from harness.frame.export import write
from tests.performance.command import READERS, load_text, loaded, options
from tests.performance.load import ENVIRONMENT
from tests.performance.scale_tree import STAGES, synthetic_frame

ROWS = 5_000_000
MACHINES = 10
NIGHTS = 30
WORKLOADS = 50
DTYPES, SIZES = ("float32", "bfloat16"), tuple(2**n for n in range(4, 12))
WORKLOAD = "family.Workload7"
TARGET = "1.5 s, 500 MiB"


def main() -> None:
    """Write, read, print."""
    given = options(
        __doc__, rows=ROWS, rows_per_night=ROWS // (MACHINES * NIGHTS), all=False
    )  # all: read every row as well
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "nights"
        began = time.perf_counter()
        written = files = 0
        while written < given.rows:
            rows = night(files % MACHINES, files // MACHINES, given.rows_per_night)
            files += write(rows, folder)
            written += len(rows)
        wrote_s = time.perf_counter() - began
        size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
        print(
            f"{written} rows in {files} files, {size / 2**20:.0f} MiB, written in {wrote_s:.0f} s"
        )
        loaded(folder, WORKLOAD)  # brings the files into memory, so the disk has no part in it
        for reader in READERS:
            if importlib.util.find_spec(reader.lower()):
                text = load_text(loaded(folder, WORKLOAD, reader), TARGET)
                print(f"{reader}, one workload\n{text}")
        if given.all:
            print(f"harness, everything\n{load_text(loaded(folder), 'none')}")


def night(machine: int, number: int, rows: int) -> pd.DataFrame:
    """Return the rows of one night on one machine, as records give them."""
    cases = max(rows // len(STAGES), WORKLOADS)
    frame = synthetic_frame(cases, 1, seed=NIGHTS * machine + number)
    case = np.arange(len(frame)) // len(STAGES)
    begin = pd.Timestamp("2026-01-01", tz="UTC").as_unit("ms") + pd.Timedelta(days=number)
    return frame.assign(
        machine=f"machine{machine}",
        commit=f"{number * 7919:040x}",
        commit_date=begin,
        started_at=begin,
        night=f"{begin:%Y-%m-%d}",
        workload=[f"family.Workload{code}" for code in case * WORKLOADS // cases],
        environment=pd.Series(
            [json.dumps({**ENVIRONMENT, "night": number // 7})] * len(frame), dtype=object
        ),
        axes=np.array(
            [f'{{"size": {size}, "dtype": "{dtype}"}}' for dtype in DTYPES for size in SIZES]
        )[case % (len(DTYPES) * len(SIZES))],
    )


if __name__ == "__main__":
    main()
