"""How long `harness cache doctor` takes, and whether it calls a healthy cache bad.

    python -m tests.performance.doctor

Compiles up to three cases of each of the project's workloads into a cache, has every entry looked
at and loaded, then does so with 20,000 copies of the smaller ones, and loads 500. It says how many
entries were called bad, of which none is, and the seconds of the whole command.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import jax

from harness.declare import discovery
from harness.declare.transforms import NotApplicable
from harness.declare.workload import WorkloadError, enumerate_cases
from harness.stages.build import Build
from harness.stages.prepared import prepare
from tests.performance.command import BENCHMARKS, options, took

CASES, COPIES, LOADED = 3, 20_000, 500


def main() -> None:
    """Fill caches, and look at them."""
    options(__doc__)
    with tempfile.TemporaryDirectory(prefix="harness-doctor-") as name:
        folder = Path(name)
        _fill(folder / "own")
        entries = sorted((folder / "own").glob("*-cache"), key=lambda file: file.stat().st_size)
        _look(folder / "own", "--load")
        for count, more in ((COPIES, ()), (LOADED, ("--load",))):
            place = folder / f"{count}"
            place.mkdir()
            for number, entry in zip(range(count), itertools.cycle(entries[: len(entries) // 2])):
                module = entry.name.removesuffix("-cache")[:-65]
                key = hashlib.sha256(str(number).encode()).hexdigest()
                shutil.copyfile(entry, place / f"{module}-{key}-cache")
            _look(place, *more)


def _fill(directory: Path) -> None:
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    for workload in discovery.discover(BENCHMARKS).workloads:
        for case in itertools.islice(enumerate_cases(workload, ["cpu"]), CASES):
            try:
                build = Build.of(prepare(workload, case))
            except (NotApplicable, WorkloadError):  # such as 64 bits, in a process of 32
                continue
            for _, step in build.steps():
                step()


def _look(directory: Path, *more: str) -> None:
    command = [sys.executable, "-m", "harness", "cache", "doctor", directory, "--json"]
    done = took([*command, "--no-put-cost", "--settle", "0", *more], code=None)
    told = json.loads(done.out)
    bad = [one for one in told["diagnosis"]["findings"] if one["severity"] != "note"]
    loads = told["loads"]
    loaded = f", {loads['loaded']} loaded" if loads else ""
    count = len(list(directory.glob("*-cache")))
    print(
        f"{count:,} entries in {done.wall_s:.1f} s, {done.cpu_s:.1f} s of CPU{loaded}; "
        f"{len(bad)} called bad",
        flush=True,
    )


if __name__ == "__main__":
    main()
