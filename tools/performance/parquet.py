"""How long one workload of a large export takes to read, and how much memory: by whom.

    python -m tools.performance.parquet [--rows 5000000] [--rows-per-night 16666] [--all]

Writes so many rows, night by night, with the export's own code, reads one workload of them (with
`--all` every row too) in fresh processes with harness and pandas, and prints the figures beside the
target. `--rows-per-night 4000` makes the same rows of many small nights.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from harness.frame.export import write
from tools.performance.command import READERS, loaded, options
from tools.performance.load import ENVIRONMENT
from tools.performance.scale_tree import STAGES, synthetic_frame

MACHINES, NIGHTS, WORKLOADS = 10, 30, 50
AXES = [
    f'{{"size": {2**n}, "dtype": "{d}"}}' for d in ("float32", "bfloat16") for n in range(4, 12)
]
WORKLOAD = "family.Workload7"
TARGET = "1.5 s, 500 MiB"


def main() -> None:
    given = options(
        __doc__, rows=5_000_000, rows_per_night=5_000_000 // (MACHINES * NIGHTS), all=False
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "nights"
        written = files = 0
        while written < given.rows:
            rows = night(files % MACHINES, files // MACHINES, given.rows_per_night)
            files += write(rows, folder)
            written += len(rows)
        size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
        print(f"{written} rows in {files} files, {size / 2**20:.0f} MiB")
        loaded(folder, "", WORKLOAD)  # brings the files into memory: the disk has no part in it
        for reader in READERS:
            print(f"{reader}, one workload\n{loaded(folder, TARGET, WORKLOAD, reader)}")
        if given.all:
            print(f"harness, everything\n{loaded(folder, 'none')}")


def night(machine: int, number: int, rows: int) -> pd.DataFrame:
    """Return the rows of one night on one machine, as records give them."""
    cases = max(rows // len(STAGES), WORKLOADS)
    frame = synthetic_frame(cases, 1, seed=NIGHTS * machine + number)
    case = np.arange(len(frame)) // len(STAGES)
    begin = pd.Timestamp("2026-01-01", tz="UTC").as_unit("ms") + pd.Timedelta(days=number)
    environment = json.dumps({**ENVIRONMENT, "night": number // 7})
    return frame.assign(
        machine=f"machine{machine}",
        commit=f"{number * 7919:040x}",
        commit_date=begin,
        started_at=begin,
        night=f"{begin:%Y-%m-%d}",
        workload=[f"family.Workload{code}" for code in case * WORKLOADS // cases],
        environment=pd.Series([environment] * len(frame), dtype=object),
        axes=np.array(AXES)[case % len(AXES)],
    )


if __name__ == "__main__":
    main()
