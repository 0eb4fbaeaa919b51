"""First calls by the harness, beside a stopwatch in fresh processes that knows nothing of it.

    python -m tests.performance.first_calls [--rounds 8] [--seed 0]

Five functions, without a cache, with a cold and with a warm one. In every round each function is
called once in every scenario by the harness and by the stopwatch, in random order, each time in a
process of its own. Printed are the medians and the least, their ratios, and `relative_warm`
(target: within 10 %).
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import harness
from harness.declare import discovery
from tests.performance.command import options, took

FUNCTIONS = """
import jax, jax.numpy as jnp, numpy as np

def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype="float32")

def mlp(x, w1, w2, w3):
    return jnp.tanh(jnp.tanh(x @ w1) @ w2) @ w3

def block(x, q, k, v, o, up, down):
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    y = norm(x)
    scores = jax.nn.softmax((y @ q) @ (y @ k).T / 8.0, axis=-1)
    x = x + scores @ (y @ v) @ o
    return x + jax.nn.gelu(norm(x) @ up) @ down

def rnn(x, w, u):
    def step(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h
    return jax.lax.scan(step, jnp.zeros(64), x)[1]

def softmax(x):
    return jax.nn.softmax(x, axis=-1)

def solve(a, b):
    return jnp.linalg.solve(a @ a.T + 10 * jnp.eye(64), b)

FIVE = {
    "mlp": (mlp, [(32, 64), (64, 64), (64, 64), (64, 8)]),
    "block": (block, [(128, 64), *[(64, 64)] * 4, (64, 256), (256, 64)]),
    "rnn": (rnn, [(100, 16), (64, 64), (16, 64)]),
    "softmax": (softmax, [(128, 1000)]),
    "solve": (solve, [(64, 64), (64,)]),
}
"""

STOPWATCH = """
import sys, time
import jax
jax.devices()
from functions import FIVE, normal
function, shapes = FIVE[sys.argv[1]]
arguments = jax.block_until_ready([jax.device_put(normal(*shape)) for shape in shapes])
call = jax.jit(function)
begin = time.perf_counter()
jax.block_until_ready(call(*arguments))
print(time.perf_counter() - begin)
"""

WORKLOADS = """
from functions import FIVE, normal
from harness import Workload

def made(name):
    function, shapes = FIVE[name]
    own = {
        "inputs": lambda self: tuple(normal(*shape) for shape in shapes),
        "function": staticmethod(function),
        "targets": ("cpu",),
        "__module__": __name__,
    }
    return type(name, (Workload,), own)

mlp, block, rnn, softmax, solve = map(made, FIVE)
"""

NAMES = ("mlp", "block", "rnn", "softmax", "solve")
SCENARIOS = ("off", "cold", "warm")


def stopwatch(folder: Path, name: str) -> dict[str, float]:
    """Return the seconds of a first call in each scenario, each in a process of its own."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        written = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        off = {"JAX_ENABLE_COMPILATION_CACHE": "0"}
        order = random.choice([("off", "cold", "warm"), ("cold", "warm", "off")])
        for scenario in order:
            own = off if scenario == "off" else written
            there = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(folder), **own}
            done = took([sys.executable, "-c", STOPWATCH, name], cwd=folder, env=there)
            found[scenario] = float(done.out)
    return found


def main() -> None:
    """Measure in turns, and print a line for each function and scenario."""
    given = options(__doc__, rounds=8, seed=0)
    random.seed(given.seed)
    watch: dict[tuple[str, str], list[float]] = defaultdict(list)
    frames = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "functions.py").write_text(FUNCTIONS)
        (folder / "five.py").write_text(WORKLOADS)
        paths = filter(None, [str(folder), os.environ.get("PYTHONPATH")])
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path.insert(0, str(folder))
        found = {one.__name__: one for one in discovery.discover(folder).workloads}

        def by_harness(name: str, number: int) -> None:
            frames[name] = harness.sweep(
                found[name],
                effort="1x1",
                scenarios=SCENARIOS,
                first_calls=number + 1,  # what there is already is not measured again
                results=folder / "results",
            )

        def by_stopwatch(name: str, number: int) -> None:
            for scenario, second in stopwatch(folder, name).items():
                watch[name, scenario].append(second)

        for number in range(given.rounds):
            for name in random.sample(NAMES, len(NAMES)):
                for measure in random.sample([by_harness, by_stopwatch], 2):
                    measure(name, number)
    show(frames, watch)


def show(frames: dict, watch: dict[tuple[str, str], list[float]]) -> None:
    """Print the table."""
    print(f"{'median (least), ms':16s} {'harness':>14s} {'stopwatch':>14s}  ratio   collector")
    for name in NAMES:
        rows = frames[name][frames[name]["stage"] == "first_call"].set_index("scenario")
        ratios = []
        for summary in (statistics.median, min):
            ours = {one: summary(rows["samples"][one]) for one in SCENARIOS}
            true = {one: summary(watch[name, one]) for one in SCENARIOS}
            ratios.append((ours["warm"] / ours["cold"], true["warm"] / true["cold"]))
        for scenario in SCENARIOS:
            mine, other = rows["samples"][scenario], watch[name, scenario]
            middle, least = (f(mine) / f(other) for f in (statistics.median, min))
            print(
                f"{name:8s} {scenario:9s} {text(mine)} {text(other)}   {middle:.2f} ({least:.2f}) "
                f"{rows['collected_s'][scenario] * 1e3:4.0f} ms"
            )
        middle, least = ratios
        print(
            f"{name:8s} warm/cold  {middle[0]:6.3f} ({least[0]:.3f}) {middle[1]:6.3f} "
            f"({least[1]:.3f})   {middle[0] / middle[1]:.2f} ({least[0] / least[1]:.2f})"
        )


def text(seconds: list[float]) -> str:
    """Return the median, and the least in brackets, in milliseconds."""
    return f"{statistics.median(seconds) * 1e3:6.0f} ({min(seconds) * 1e3:5.0f})"


if __name__ == "__main__":
    main()
