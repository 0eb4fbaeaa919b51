"""How long `harness.load` takes on a large tree, and the rows of two commits; and how much memory.

    python -m tools.performance.load [--files 1000] [--processes 0]

Writes so many records files that hold together 200,000 frame rows, with so many processes per case
(0: with 8, then with 1), reads them in a fresh process, and prints the figures beside the targets.
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.program.facts import TOTALS, Facts
from harness.records.schema import digest, to_raw
from harness.records.store import Store, record_files, store_path
from tests.frame import trees
from tools.performance.command import loaded, options, took

AXES = [{"size": 2**n, "dtype": dtype} for n in range(10, 20) for dtype in ("f32", "bf16")]
CASES = [(f"elementwise.Workload{number}", axes) for number in (0, 1) for axes in AXES]
SAMPLES = {"trace": 3, "lower": 3, "compile": 3, "dispatch": 24, "execute": 12}
"""Samples per stage that a process of the default effort takes in its 3 passes."""

ENVIRONMENT = {
    **{"python": "3.11.7", "jax": "0.10.2", "jaxlib": "0.10.2", "plugins": {}},
    "flags": {
        "JAX_ENABLE_COMPILATION_CACHE": "0",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    },
    "host": {
        **{"system": "Linux 6.8.0-40-generic", "arch": "x86_64", "cores": 16, "affinity": 16},
        **{"cpu": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "ram_bytes": 67_430_719_488},
    },
    **{"device": "cpu", "devices": 1, "platform": "cpu", "platform_version": "cpu", "x64": False},
}

_TWO = """
import sys, time
from pathlib import Path
from harness.frame.arms import rows_of_arms
folder, a, b = sys.argv[1:]
begin, cpu = time.perf_counter(), time.process_time()
rows = len(rows_of_arms(Path(folder), a, b, {}))
took_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
peak = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
print(f"  two commits {took_s:.2f} s, {cpu_s:.2f} s of CPU (target 2 s and 350 MiB), {rows} rows")
print(f"  peak memory {peak / 1024:.0f} MiB")
"""


def main() -> None:
    given = options(__doc__, processes=0, files=1_000)
    for processes in [given.processes] if given.processes else [8, 1]:
        with tempfile.TemporaryDirectory() as folder:
            size = write_tree(Path(folder), given.files, processes)
            print(f"{given.files} files, {size / 2**20:.0f} MiB, {processes} process(es) per case")
            print(loaded(Path(folder), "6 s and 1024 MiB"))
            commits = [f"commit={file.name[:8]}" for file in record_files(Path(folder))[:2]]
            print(took([sys.executable, "-c", _TWO, folder, *commits]).out.rstrip())


def write_tree(results: Path, files: int, processes: int) -> int:
    """Write a tree of records as the default effort leaves it, and return its size in bytes."""
    rng = random.Random(0)
    environment = to_raw(ENVIRONMENT)

    def time_ns() -> float:
        return round(rng.uniform(1e4, 5e7), 1)

    size = 0
    for number in range(files):
        date_ms = 1_700_000_000_000 + number
        of_file: dict[str, Any] = {
            "machine": f"machine{number % 4}",
            "commit": f"{rng.getrandbits(160):040x}",
            "commit_date_ms": date_ms,
            "environment": environment,
            "load_average": [1.27490234375, 0.98388671875, 0.5751953125],
        }
        records = [
            trees.record(
                process,
                {stage: [time_ns() for _ in range(count)] for stage, count in SAMPLES.items()},
                key=digest(workload, axes, number),
                replicate=f"{workload}@cpu#{process}",
                workload=workload,
                axes=axes,
                started_at_ms=date_ms + process,
                reference_ns={stage: time_ns() for stage in (*SAMPLES, "loop")},
                fingerprint=digest(workload, axes),
                facts=Facts(
                    **{fact: 100 * case + at for at, fact in enumerate(TOTALS)},
                    stablehlo_kinds={"add": 2, "dot_general": 1, "broadcast_in_dim": 3},
                    fusion_kinds={"loop": 2},
                ),
                **of_file,
            )
            for process in range(processes)
            for case, (workload, axes) in rng.sample(list(enumerate(CASES)), len(CASES))
        ]
        place = (of_file["machine"], of_file["commit"], "existing-py3.11-jax0.10.2")
        store = Store(store_path(results, *place))
        store.append(records)
        size += store.path.stat().st_size
    return size


if __name__ == "__main__":
    main()
