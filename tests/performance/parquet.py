"""How long `harness.load` takes on Parquet with a filter on one workload, and how much memory.

Run it as `python -m tests.performance.parquet`: it writes 5 million rows, night by night, with the
export's own code, reads one workload of them in a fresh process, and prints the figures beside the
target. `--rows-per-night 4000` makes the same rows of many small nights.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from harness.frame.export import write
from tests.performance.command import load_text, loaded, options
from tests.performance.load import ENVIRONMENT
from tests.performance.scale_tree import STAGES, synthetic_frame

ROWS = 5_000_000
MACHINES = 10
NIGHTS = 30
WORKLOADS = 50
TARGET_S = 2


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
        # The second time the files are in memory, and the disk has no part in it.
        for workload in [*["family.Workload7"] * 2, *([""] if given.all else [])]:
            text = load_text(loaded(folder, workload), f"for one workload {TARGET_S} s")
            print(f"load of {workload or 'everything'}\n{text}")


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
        dtype=pd.Series(np.array(["float32", "bfloat16"], object)[case % 2], dtype=object),
    )


if __name__ == "__main__":
    main()
