"""What docs/fleet-scale.md extrapolates from: bytes, seconds and memory of the committed results.

    python -m tools.performance.fleet_figures

Reads docs/example-results and takes the sweeps that compare nothing with a baseline. Bytes, seconds
and memory are per measured case and process: those of the records of processes and of their
reference program are shared out among the cases. Seconds are from the first process of a sweep to
the last, over the cases that had been measured until then: starts of processes included.
"""

import gzip
import tempfile
import time
import tracemalloc
from pathlib import Path

from harness.records.schema import Problems, Record, encode, read_file
from harness.records.store import Store, record_files
from tools.performance.command import ROOT

APPENDED = 1000
OWN = ("process", "reference")


def main() -> None:
    files = record_files(ROOT / "docs/example-results")
    sweeps = [[r for r in read_file(file, Problems()) if r.effort == "6x1"] for file in files]
    suite = [record for sweep in sweeps for record in sweep]
    cases = [r for r in suite if r.workload not in OWN]
    lines = [encode(record) for record in suite]
    count = len(cases)
    print(f"{count} cases and processes, {len(suite)} records, effort 6x1")
    print(f"{sum(map(len, lines)) / count:8.0f} bytes in records files")
    print(f"{len(gzip.compress(b''.join(lines))) / count:8.0f} bytes of it compressed (gzip)")
    took_ms = before = 0
    for sweep in filter(None, sweeps):
        first, last = min(r.started_at_ms for r in sweep), max(r.started_at_ms for r in sweep)
        took_ms += last - first
        before += sum(r.started_at_ms < last for r in sweep if r.workload not in OWN)
    print(f"{took_ms / 1e3 / before:8.2f} seconds of wall time")
    tracemalloc.start()
    kept: list[Record] = []
    while len(kept) < 10_000:
        kept += [r for file in files for r in read_file(file, Problems()) if r.effort == "6x1"]
    held = tracemalloc.get_traced_memory()[0] / len(kept) * len(suite) / count
    tracemalloc.stop()
    print(f"{held:8.0f} bytes of memory, where records are kept as objects")
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "records.jsonl")
        for what, work in (
            ("stored", lambda: [store.append([record]) for record in kept[:APPENDED]]),
            ("read", lambda: list(read_file(store.path, Problems()))),
        ):
            begin = time.perf_counter()
            many = len(work())
            print(f"{many / (time.perf_counter() - begin):8.0f} records a second are {what}")


if __name__ == "__main__":
    main()
