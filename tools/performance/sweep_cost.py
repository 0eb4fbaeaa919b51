"""What a sweep costs through `asv run`, beside a careful suite written by hand for asv.

    python -m tools.performance.sweep_cost [--processes 8] [--passes 3]

Both measure six cases of GELU in four stages (trace, lower, compile, execute) in 8 processes of 3
samples each, on this machine, through `asv run -E existing`: the harness, the suite by hand, the
harness again, because machines drift. The suite by hand has one `time_*` class per stage, starts
each sample with `jax.clear_caches()` and a fresh function object, and keeps one-time costs out with
a warm-up program; its `execute` leaves warm-up and calls per sample to asv. Printed are wall
and CPU times, their ratios (wanted: 1/12 or less), and the answers side by side.
"""

import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

from tools.fleet_processes import commit
from tools.performance.command import ROOT, Took, options, took

CONFIGURATION = """
{"version": 1, "project": "cost", "repo": ".", "branches": ["HEAD"], "environment_type": "existing",
 "plugins": [".harness.asv.environment"], "launch_method": "%s", "default_benchmark_timeout": 7200,
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

class Execute:
    # No setup: asv_runner 0.3 would run it before every call, and time one call at a time.
    params, param_names = Stage.params, Stage.param_names
    rounds, repeat, number = %(processes)d, PASSES, 0
    ready = None

    def time_execute(self, size, approximate):
        if self.ready is None:
            x = np.random.default_rng(0).standard_normal(size, dtype=np.float32)
            self.x, self.ready = jax.device_put(x), jax.jit(gelu, static_argnames=("approximate",))
        self.ready(self.x, approximate=approximate).block_until_ready()
"""

INIT = "from harness.asv import suite\nsuite.install()\n"


def project(folder: Path, files: dict[str, str], launch: str) -> Path:
    """Make a git repository with an asv suite in it."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "asv.conf.json").write_text(CONFIGURATION % launch)
    for name, text in files.items():
        (folder / "benchmarks" / name).write_text(text)
    commit(folder)
    return folder


def run(folder: Path, effort: str) -> Took:
    """Return what `asv run` took."""
    there = {
        **{"HOME": str(folder.parent), "HARNESS_EFFORT": effort, "JAX_PLATFORMS": "cpu"},
        **{"PYTHONPATH": str(ROOT), "ASV_PYTHONPATH": str(ROOT)},
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }
    asv = [sys.executable, "-m", "asv"]
    took([*asv, "machine", "--yes"], cwd=folder, **there)
    command = [*asv, "run", "-E", "existing", "--set-commit-hash", "HEAD", "--record-samples"]
    return took(command, cwd=folder, **there)


def answers(folder: Path) -> dict[str, list[float]]:
    """Return by stage what asv stored: the median of each of the six cases, in seconds."""
    file = next(folder.glob("results/*/*existing*.json"))
    stored = json.loads(file.read_text())
    column = stored["result_columns"].index("samples")
    return {
        name.rpartition("_")[2]: [
            statistics.median(case or [math.nan]) for case in row[column] or []
        ]
        for name, row in stored["results"].items()
    }


def main() -> None:
    given = options(__doc__, processes=8, passes=3)
    ours = ({"__init__.py": INIT, "gelu.py": OURS}, "forkserver")
    suites = {
        "before": ours,
        "by hand": ({"__init__.py": "", "gelu.py": BY_HAND % vars(given)}, "spawn"),
        "after": ours,
    }
    runs, medians = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: project(Path(scratch) / name, *suite) for name, suite in suites.items()}
        for name, folder in folders.items():
            runs[name] = run(folder, f"{given.processes}x{given.passes}")
            medians[name] = answers(folder)
    for clock, field in (("wall", "wall_s"), ("CPU", "cpu_s")):
        before_s, by_hand_s, after_s = (getattr(one, field) for one in runs.values())
        print(
            f"{clock}: harness {before_s:.1f} s before and {after_s:.1f} s after, by hand "
            f"{by_hand_s:.1f} s: 1/{2 * by_hand_s / (before_s + after_s):.1f}"
        )
    print(f"{'stage':8s} case {' '.join(f'{name:>10s}' for name in medians)}   (medians)")
    for stage in ("trace", "lower", "compile", "execute"):
        for case in range(6):
            texts = " ".join(f"{suite[stage][case] * 1e3:8.3f}ms" for suite in medians.values())
            print(f"{stage:8s} {case:4d} {texts}")


if __name__ == "__main__":
    main()
