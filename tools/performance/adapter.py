"""What asv's adapter costs a measuring process, and how long workloads take to be found.

    python -m tools.performance.adapter [--rounds 8] [--workloads 20]

A file of so many workloads is measured in turns with `suite.install()` in its package and without.
Printed is the median of `ready` - `import` - `backend` (target: at most 0.1 s), and the seconds of
CPU in which 5,000 cases are found: 200 workloads of 25 cases in one file (target: 2 s).
"""

import functools
import json
import statistics
import sys
import tempfile
from pathlib import Path

from harness.frame.load import everything
from tools.performance.command import HARNESS, in_turns, options, took
from tools.performance.sweep_cost import INIT

WORKLOAD = """

class Tanh{number}(Workload):
    sweep = {{"size": list(range(8, {last}))}}

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jax.numpy.tanh(x) + {number}
"""

DISCOVER = """
import json, pathlib, sys, time
from harness.workload import discovery
begin = time.process_time()
import jax
imported = time.process_time()
found = discovery.discover(pathlib.Path(sys.argv[1])).workloads
print(json.dumps([len(found), time.process_time() - imported]))
"""


def suite(folder: Path, workloads: int, sizes: int, init: str) -> Path:
    """Write a folder of benchmarks with one file of workloads, and return it."""
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(init)
    classes = (WORKLOAD.format(number=n, last=8 + sizes) for n in range(workloads))
    text = "import jax\nfrom harness import Workload, spec\n"
    (folder / "many.py").write_text(text + "".join(classes))
    return folder


def unexplained_s(benchmarks: Path) -> tuple[float, float]:
    """Return `ready` - `import` - `backend`, and `import`, of one process in seconds."""
    results = tempfile.mkdtemp(dir=benchmarks.parent)
    where = ["--benchmarks", benchmarks, "--results", results]
    took([*HARNESS, "run", "Tanh0", "--effort", "1x1", "--fresh", *where], JAX_PLATFORMS="cpu")
    frame = everything(results, where={"workload": "process"}).set_index("stage")["value"]
    return float(frame["ready"] - frame["import"] - frame["backend"]), float(frame["import"])


def main() -> None:
    given = options(__doc__, rounds=8, workloads=20)
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        arms = {"with suite.install()": INIT, "without": ""}
        measured = {}
        for arm, init in arms.items():
            folder = suite(top / arm / "benchmarks", given.workloads, 1, init)
            measured[arm] = functools.partial(unexplained_s, folder)
        for arm, found in in_turns(given.rounds, measured).items():
            rest, imported = (statistics.median(some) for some in zip(*found, strict=True))
            print(
                f"ready - import - backend, {given.workloads} workloads in a file, {arm}: "
                f"{rest:.3f} s (least {min(found)[0]:.3f} s; import {imported:.3f} s)"
            )
        for arm, init in arms.items():
            folder = suite(top / f"large {arm}" / "benchmarks", 200, 25, init)
            workloads, cpu_s = json.loads(took([sys.executable, "-c", DISCOVER, folder]).out)
            print(f"5,000 cases of {workloads} workloads in a file, {arm}: {cpu_s:.2f} s of CPU")


if __name__ == "__main__":
    main()
