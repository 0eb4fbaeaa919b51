"""What a sweep costs through `asv run`, beside a careful suite written by hand for asv.

    python -m tests.performance.sweep_cost [--processes 8] [--passes 3]

Both measure six cases of GELU in four stages (trace, lower, compile, execute) in 8 processes of 3
samples each, on this machine, one after the other, through `asv run -E existing`. The suite by hand
has one `time_*` class per stage, starts each sample with `jax.clear_caches()` and a fresh function
object, and keeps one-time costs out with a warm-up program. Printed are both wall times, their
ratio (target: at most 1/8), and the answers side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CONFIGURATION = """
{"version": 1, "project": "cost", "repo": ".", "branches": ["HEAD"], "environment_type": "existing",
 "plugins": [".harness.asv_environment"], "launch_method": "%s", "default_benchmark_timeout": 7200,
 "benchmark_dir": "benchmarks", "results_dir": "results", "env_dir": "env", "html_dir": "html"}
"""

OURS = """
import jax
from harness import Workload, spec

class Gelu(Workload):
    '''The six cases.'''
    sweep = {"size": [2**10, 2**16, 2**20], "approximate": [True, False]}
    static = ("approximate",)
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x, approximate):
        return jax.nn.gelu(x, approximate=approximate)
"""

BY_HAND = """
import types
import jax, numpy as np

PASSES = %(passes)d

def gelu(x, approximate):
    return jax.nn.gelu(x, approximate=approximate)

class Stage:
    params = [[2**10, 2**16, 2**20], [True, False]]
    param_names = ["size", "approximate"]
    rounds, repeat, number, warmup_time = %(processes)d, PASSES, 1, 0
    warm = False

    def setup(self, size, approximate):
        if not Stage.warm:
            jax.jit(lambda x: x + 1)(np.ones(3)).block_until_ready()
            Stage.warm = True
        jax.clear_caches()
        copy = types.FunctionType(gelu.__code__, gelu.__globals__, gelu.__name__)
        self.jitted = jax.jit(copy, static_argnames=("approximate",))
        self.spec = jax.ShapeDtypeStruct((size,), "float32")
        self.prepare(size, approximate)

class Trace(Stage):
    def prepare(self, size, approximate):
        pass
    def time_trace(self, size, approximate):
        self.jitted.trace(self.spec, approximate=approximate)

class Lower(Stage):
    def prepare(self, size, approximate):
        self.traced = self.jitted.trace(self.spec, approximate=approximate)
    def time_lower(self, size, approximate):
        self.traced.lower()

class Compile(Stage):
    def prepare(self, size, approximate):
        self.lowered = self.jitted.trace(self.spec, approximate=approximate).lower()
    def time_compile(self, size, approximate):
        self.lowered.compile()

class Execute(Stage):
    def prepare(self, size, approximate):
        x = np.random.default_rng(0).standard_normal(size, dtype=np.float32)
        self.x = jax.device_put(x)
        self.call = lambda: self.jitted(self.x, approximate=approximate).block_until_ready()
        for _ in range(5):
            self.call()
    def time_execute(self, size, approximate):
        self.call()
"""

INIT = "from harness import suite\nsuite.install()\n"


def project(folder: Path, files: dict[str, str], launch: str) -> None:
    """Make a git repository with an asv suite in it."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "asv.conf.json").write_text(CONFIGURATION % launch)
    for name, text in files.items():
        (folder / "benchmarks" / name).write_text(textwrap.dedent(text))
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "suite"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)


def run(folder: Path, home: Path, effort: str) -> float:
    """Return the wall time of `asv run` in seconds."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "HARNESS_EFFORT": effort,
        "PYTHONPATH": str(ROOT),
        "ASV_PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }
    asv = [sys.executable, "-m", "asv"]
    subprocess.run([*asv, "machine", "--yes"], cwd=folder, env=environment, check=True, **QUIET)
    begin = time.perf_counter()
    subprocess.run(
        [*asv, "run", "-E", "existing", "--set-commit-hash", "HEAD", "--record-samples"],
        cwd=folder,
        env=environment,
        check=True,
        **QUIET,
    )
    return time.perf_counter() - begin


QUIET = {"stdout": subprocess.DEVNULL}


def answers(folder: Path) -> dict[str, list[list[float] | None]]:
    """Return by stage what asv stored: the samples of the six cases, in seconds."""
    file = next(folder.glob("results/*/*existing*.json"))
    found = json.loads(file.read_text())
    column = found["result_columns"].index("samples")
    return {name.rpartition("_")[2]: row[column] for name, row in found["results"].items()}


def main() -> None:
    """Run both suites and print what they cost and what they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    effort = f"{options.processes}x{options.passes}"
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        ours, by_hand = Path(scratch) / "ours", Path(scratch) / "by_hand"
        project(ours, {"__init__.py": INIT, "gelu.py": OURS}, "forkserver")
        project(by_hand, {"__init__.py": "", "gelu.py": BY_HAND % vars(options)}, "spawn")
        ours_s, by_hand_s = run(ours, home, effort), run(by_hand, home, effort)
        print(
            f"harness {ours_s:.1f} s, by hand {by_hand_s:.1f} s: 1/{by_hand_s / ours_s:.1f} "
            "(target: at most 1/8)"
        )
        mine, theirs = answers(ours), answers(by_hand)
    print(f"{'stage':8s} {'case':>4s} {'harness':>10s} {'by hand':>10s} {'ratio':>6s}   (medians)")
    for stage in ("trace", "lower", "compile", "execute"):
        for case, (left, right) in enumerate(zip(mine[stage], theirs[stage], strict=True)):
            a, b = statistics.median(left or []), statistics.median(right or [])
            print(f"{stage:8s} {case:4d} {a * 1e3:8.3f}ms {b * 1e3:8.3f}ms {a / b:6.2f}")


if __name__ == "__main__":
    main()
