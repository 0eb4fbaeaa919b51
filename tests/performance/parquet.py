"""How long `harness.load` takes on Parquet with a filter on one workload, and how much memory.

Run it as `python -m tests.performance.parquet`: it writes 5 million rows, night by night, with the
export's own code, reads one workload of them in a fresh process, and prints the figures beside the
target. `--rows-per-night 4000` makes the same rows of many small nights.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from harness.frame.export import write
from harness.frame.frame import COLUMNS, COUNT, MOMENT, NUMBER, objects
from harness.stages import registry as stages
from tests.performance.load import ENVIRONMENT

ROWS = 5_000_000
MACHINES = 10
NIGHTS = 30
WORKLOADS = 50
PROCESSES = 8
STAGES = tuple(stages.STAGES)[5:13]
TARGET_S = 2.0

READ = """
import json, resource, sys, time
begin = time.perf_counter()
from harness.frame import load
imported, cpu = time.perf_counter(), time.process_time()
where = {"workload": sys.argv[2]} if sys.argv[2] else None
frame = load.load(sys.argv[1], where=where)
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "rows": len(frame),
    "import_s": imported - begin,
    "load_s": done - imported,
    "cpu_s": time.process_time() - cpu,
    "peak_bytes": peak if sys.platform == "darwin" else peak * 1024,
}))
"""


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rows-per-night", type=int, default=ROWS // (MACHINES * NIGHTS))
    parser.add_argument("--all", action="store_true", help="read every row as well")
    given = parser.parse_args()
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
            done = subprocess.run(
                [sys.executable, "-c", READ, folder, workload],
                check=True,
                capture_output=True,
                text=True,
            )
            found = json.loads(done.stdout)
            print(
                f"load of {workload or 'everything'}\n"
                f"  rows        {found['rows']}\n"
                f"  load        {found['load_s']:.2f} s, {found['cpu_s']:.2f} s of CPU "
                f"(target for one workload {TARGET_S:.0f} s), "
                f"after imports of {found['import_s']:.2f} s\n"
                f"  peak memory {found['peak_bytes'] / 2**20:.0f} MiB"
            )


def night(machine: int, number: int, rows: int) -> pd.DataFrame:
    """Return the rows of one night on one machine, as records give them."""
    rng = np.random.default_rng([machine, number])
    cases = max(rows // len(STAGES), WORKLOADS)
    case = np.repeat(np.arange(cases), len(STAGES))
    workload = case * WORKLOADS // cases
    n = len(case)
    samples = rng.uniform(1e-5, 5e-2, (n, PROCESSES)).round(10)
    calibrated = samples / rng.uniform(1e-5, 5e-2, (1, PROCESSES))
    begin = pd.Timestamp("2026-01-01", tz="UTC").as_unit("ms") + pd.Timedelta(days=number)
    texts = {
        "machine": f"machine{machine}",
        "commit": f"{number * 7919:040x}",
        "env": "existing-py3.11-jax0.10.2",
        **{"python": "3.11.7", "jax": "0.10.2", "jaxlib": "0.10.2", "version": "1.1714971614c8"},
        **{"target": "cpu", "transform": "forward", "scenario": "off", "unit": "seconds"},
        **{"status": "ok", "effort": "default", "night": f"{begin:%Y-%m-%d}", "backend": "xla"},
        "environment": json.dumps({**ENVIRONMENT, "night": number // 7}),
        "workload": objects(f"family.Workload{code}" for code in range(WORKLOADS))[workload],
        "stage": np.tile(objects(STAGES), cases),
        "fingerprint": objects(f"{code:016x}" for code in range(cases))[case],
    }
    ordered = np.sort(samples, axis=1)
    numbers = {
        "value": np.median(samples, axis=1),
        "calibrated": np.median(calibrated, axis=1),
        "low": ordered[:, 0],
        "high": ordered[:, -1],
        "n_processes": np.full(n, PROCESSES),
        "entry_bytes": np.full(n, np.nan),
    }
    data = {}
    for column, kind in COLUMNS.items():
        if kind == MOMENT:
            data[column] = pd.Series([begin] * n)
        elif kind in (NUMBER, COUNT):
            data[column] = pd.Series(numbers.get(column, 100.0 * case + len(column)))
        elif column in ("samples", "calibrated_samples"):
            values = samples if column == "samples" else calibrated
            data[column] = pd.Series(objects(values.tolist()), dtype=object)
        else:
            kind = object if column == "environment" else "str"
            data[column] = pd.Series(texts.get(column, ""), index=range(n), dtype=kind)
    data["size"] = pd.Series(objects(2 ** (code % 10) for code in range(cases))[case], dtype=object)
    data["dtype"] = pd.Series(objects(["float32", "bfloat16"])[case % 2], dtype=object)
    return pd.DataFrame(data)


if __name__ == "__main__":
    main()
