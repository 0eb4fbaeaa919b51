"""How long `harness.load` takes on a large tree, and how much memory.

Run it as `python -m tests.performance.load`: it writes 1,000 records files that hold together
200,000 frame rows, reads them in a fresh process, and prints the figures beside the targets.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.program.facts import TOTALS, Facts
from harness.records.schema import SCHEMA, Record, StageSamples, digest, to_raw
from harness.records.store import Store, store_path
from harness.stages.registry import CASE_STAGES

FILES = 1_000
MACHINES = 4
CASES = 40
AXES = [(size, dtype) for size in (2**n for n in range(10, 20)) for dtype in ("f32", "bf16")]
SAMPLES = {"trace": 3, "lower": 3, "compile": 3, "dispatch": 24, "execute": 12}
"""Samples per stage that a process of the default effort takes in its 3 passes."""

TARGET_S = 6.0
TARGET_BYTES = 2**30

ENVIRONMENT = {
    "python": "3.11.7",
    "jax": "0.10.2",
    "jaxlib": "0.10.2",
    "plugins": {},
    "flags": {
        "JAX_ENABLE_COMPILATION_CACHE": "0",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    },
    "host": {
        "system": "Linux 6.8.0-40-generic",
        "arch": "x86_64",
        "cpu": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
        "cores": 16,
        "affinity": 16,
        "ram_bytes": 67_430_719_488,
    },
    "device": "cpu",
    "devices": 1,
    "platform": "cpu",
    "platform_version": "cpu",
    "x64": False,
}

READ = """
import json, resource, sys, time
begin = time.perf_counter()
from harness.frame.load import load
imported = time.perf_counter()
frame = load(sys.argv[1])
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "rows": len(frame),
    "ok": int((frame["status"] == "ok").sum()),
    "import_s": imported - begin,
    "load_s": done - imported,
    "peak_bytes": peak if sys.platform == "darwin" else peak * 1024,
}))
"""


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--processes", type=int, help="processes per case (default: once with 8, once with 1)"
    )
    parser.add_argument("--files", type=int, default=FILES)
    given = parser.parse_args()
    for processes in [given.processes] if given.processes else [8, 1]:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            size = write_tree(Path(folder), given.files, processes)
            wrote_s = time.perf_counter() - began
            done = subprocess.run(
                [sys.executable, "-c", READ, folder], check=True, capture_output=True, text=True
            )
            found = json.loads(done.stdout)
        print(
            f"{given.files} files, {size / 2**20:.0f} MiB, {processes} process(es) per case "
            f"(written in {wrote_s:.0f} s)\n"
            f"  rows        {found['rows']} ({found['ok']} ok)\n"
            f"  load        {found['load_s']:.2f} s (target {TARGET_S:.0f} s), "
            f"after imports of {found['import_s']:.2f} s\n"
            f"  peak memory {found['peak_bytes'] / 2**20:.0f} MiB "
            f"(target {TARGET_BYTES / 2**20:.0f} MiB)"
        )


def write_tree(results: Path, files: int, processes: int) -> int:
    """Write a tree of records as real sweeps leave it, and return its size in bytes."""
    rng = random.Random(0)
    environment = to_raw(ENVIRONMENT)
    size = 0
    for number in range(files):
        machine = f"machine{number % MACHINES}"
        commit = f"{rng.getrandbits(160):040x}"
        store = Store(store_path(results, machine, commit, "existing-py3.11-jax0.10.2"))
        store.append(
            record(rng, environment, machine, commit, 1_700_000_000_000 + number, case, process)
            for process in range(processes)
            for case in rng.sample(range(CASES), CASES)
        )
        size += store.path.stat().st_size
    return size


def record(
    rng: random.Random,
    environment: object,
    machine: str,
    commit: str,
    date_ms: int,
    case: int,
    process: int,
) -> Record:
    """Return one record as the default effort leaves it."""
    workload = f"elementwise.Workload{case // len(AXES)}"
    size, dtype = AXES[case % len(AXES)]
    return Record(
        schema=SCHEMA,
        key=digest(workload, case, machine, commit),
        replicate=f"{workload}@cpu#{process}",
        workload=workload,
        version="1.1714971614c8",
        axes={"size": size, "dtype": dtype},
        transform="forward",
        target="cpu",
        scenario="off",
        status="ok",
        machine=machine,
        env="existing-py3.11-jax0.10.2",
        commit=commit,
        commit_date_ms=date_ms,
        protocol="3 passes x 4 blocks",
        effort="default",
        sweep="20260101T000000Z-1212074568",
        seed=1212074568,
        started_at_ms=date_ms + process,
        python="3.11.7",
        jax="0.10.2",
        jaxlib="0.10.2",
        environment=environment,  # type: ignore[arg-type]
        stages={
            stage: StageSamples([round(rng.uniform(1e4, 5e7), 1) for _ in range(SAMPLES[stage])])
            for stage in CASE_STAGES
        },
        reference_ns={stage: round(rng.uniform(1e4, 5e7), 1) for stage in (*CASE_STAGES, "loop")},
        fingerprint=digest(workload, case),
        facts=Facts(
            **{fact: 100 * case + number for number, fact in enumerate(TOTALS)},  # type: ignore[arg-type]
            stablehlo_kinds={"add": 2, "dot_general": 1, "broadcast_in_dim": 3, "maximum": 1},
            fusion_kinds={"loop": 2},
        ),
        load_average=[1.27490234375, 0.98388671875, 0.5751953125],
    )


if __name__ == "__main__":
    main()
