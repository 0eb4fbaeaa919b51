"""What stands around the examples of a page: what a reader has, and a test must make."""

from __future__ import annotations

FILES = {
    "train.py": """\
import sys

import jax
import jax.numpy as jnp


@jax.jit
def step(state, batch):
    return state - 0.1 * (state - batch)


steps = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 3
state = jnp.zeros(8)
for number in range(steps):
    state = step(state, jnp.full(8, float(number)))
""",
}
"""Files in the folder where the commands run."""

TRAINING = """
import jax
import jax.numpy as jnp

import harness

step = jax.jit(lambda state, batch: state - 0.1 * (state - batch))
state, x = jnp.zeros(8), jnp.ones(8)
batches = [jnp.full(8, float(number)) for number in range(3)]


def train(steps=3):
    out = jnp.zeros(8)
    for number in range(steps):
        out = step(out, batches[number % 3])
    return out
"""

BEFORE = {
    ("docs/baselines.md", "class Softmax"): """
import jax

from benchmarks.kernels import rows, rows_gpu
from harness import Workload, spec
""",
    ("docs/budgets.md", "with harness.budget("): TRAINING,
    ("docs/budgets.md", "pytestmark"): "import pytest\n",
    ("docs/cache.md", "from harness.cache.ledger"): """
import jax

x = jax.numpy.ones(3)
step = jax.jit(lambda x: x + 1)
""",
    ("docs/compare.md", "frame = harness.load"): "import harness\n",
    ("docs/gpu-tpu-compile.md", "class Predict"): (
        "from benchmarks.dense import Predict as Workload\n"
    ),
    # Rows of the releases that the page compares: those that are committed, relabelled.
    ("docs/frame.md", "changed = harness.compare"): """
import pandas as pd

frame = pd.concat([frame.assign(jax=name) for name in ("0.11.2", "0.12.0.1")], ignore_index=True)
""",
    ("docs/profile.md", "import harness"): (
        TRAINING + 'with harness.profile("folder"):\n    train()\n'
    ),
}
"""Python that comes before the block of a page which begins so."""

_RUNS = "mkdir -p runs && " + " && ".join(
    "JAX_COMPILATION_CACHE_DIR=DIR JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 "
    f"harness cache ledger -o runs/{name}.jsonl -- python train.py"
    for name in ("monday", "tuesday")
)

COMMANDS = {
    (
        "docs/budgets.md",
        "harness profile diff",
    ): "harness profile -o before -- python train.py && cp -r before after",
    ("docs/cache.md", "harness cache explain"): ("cp run.jsonl a.jsonl && cp run.jsonl b.jsonl"),
    ("docs/cache.md", "harness cache ledger runs/"): _RUNS,
    ("docs/profile.md", "harness profile show"): (
        "harness profile -o FOLDER -- python train.py && cp -r FOLDER BEFORE && cp -r FOLDER AFTER"
    ),
    # The results of one release: the page makes five reports.
    ("docs/report.md", "harness report"): (
        "find results -name '*py3.11*' -delete && find results -name '*0.12.0.1*' -delete"
        " && cp -r results RESULTS && asv machine --yes"
    ),
}
"""The command that makes what the commands of such a block name."""
