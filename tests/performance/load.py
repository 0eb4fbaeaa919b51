"""How long `harness.load` takes on a large tree, and how much memory.

Run it as `python -m tests.performance.load`: it writes 1,000 records files that hold together
200,000 frame rows, reads them in a fresh process, and prints the figures beside the targets.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from harness.program.facts import TOTALS, Facts
from harness.records.schema import Record, digest, to_raw
from harness.records.store import Store, store_path
from tests.frame import trees
from tests.performance.command import load_text, loaded, options

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


def main() -> None:
    """Write, read, print."""
    given = options(__doc__, processes=0, files=FILES)  # per case; without it, with 8 and with 1
    for processes in [given.processes] if given.processes else [8, 1]:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            size = write_tree(Path(folder), given.files, processes)
            wrote_s = time.perf_counter() - began
            found = loaded(Path(folder))
        print(
            f"{given.files} files, {size / 2**20:.0f} MiB, {processes} process(es) per case "
            f"(written in {wrote_s:.0f} s)\n"
            + load_text(found, f"{TARGET_S:.0f} s and {TARGET_BYTES / 2**20:.0f} MiB")
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
    taken = {
        stage: [round(rng.uniform(1e4, 5e7), 1) for _ in range(count)]
        for stage, count in SAMPLES.items()
    }
    totals = {fact: 100 * case + number for number, fact in enumerate(TOTALS)}
    return trees.record(
        process,
        taken,
        key=digest(workload, case, machine, commit),
        replicate=f"{workload}@cpu#{process}",
        workload=workload,
        axes={"size": size, "dtype": dtype},
        machine=machine,
        commit=commit,
        commit_date_ms=date_ms,
        started_at_ms=date_ms + process,
        environment=environment,
        reference_ns={stage: round(rng.uniform(1e4, 5e7), 1) for stage in (*SAMPLES, "loop")},
        fingerprint=digest(workload, case),
        facts=Facts(
            **totals,  # type: ignore[arg-type]
            stablehlo_kinds={"add": 2, "dot_general": 1, "broadcast_in_dim": 3, "maximum": 1},
            fusion_kinds={"loop": 2},
        ),
        load_average=[1.27490234375, 0.98388671875, 0.5751953125],
    )


if __name__ == "__main__":
    main()
