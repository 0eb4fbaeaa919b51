"""First calls by the harness, beside a stopwatch in fresh processes that knows nothing of it.

    python -m tools.performance.first_calls [--rounds 8] [--seed 0] [--only mlp,softmax]

Five functions, without a cache, with a cold and with a warm one, exported, and as a serialised
executable. In every round each function is called once in every scenario by the harness and by the
stopwatch, in random order, each time in a process of its own. Printed are the medians and the
least, their ratios, and `relative_warm` (target: within 10 %). No executable that calls LAPACK
(`solve`) can be loaded: the harness refuses it.
"""

import functools
import os
import random
import sys
import tempfile
from pathlib import Path

import pandas as pd

import harness
from tools.performance.command import in_turns, options, took, workloads

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
import gc, sys, time
import jax
jax.devices()
from functions import FIVE, normal
function, shapes = FIVE[sys.argv[1]]
arguments = jax.block_until_ready([jax.device_put(normal(*shape)) for shape in shapes])
call = jax.jit(function)
gc.collect()
begin = time.perf_counter()
jax.block_until_ready(call(*arguments))
print(time.perf_counter() - begin)
"""

MAKING = """
import pickle, sys
import jax
from jax import export
from jax.experimental.serialize_executable import serialize
from functions import FIVE, normal
function, shapes = FIVE[sys.argv[1]]
call, arguments = jax.jit(function), [normal(*shape) for shape in shapes]
open("exported", "wb").write(export.export(call)(*arguments).serialize())
open("executable", "wb").write(pickle.dumps(serialize(call.lower(*arguments).compile())))
"""

LOADING = """
import gc, pickle, sys, time
import jax
jax.devices()
from functions import FIVE, normal
_, shapes = FIVE[sys.argv[1]]
arguments = jax.block_until_ready([jax.device_put(normal(*shape)) for shape in shapes])
gc.collect()
begin = time.perf_counter()
stored = open(sys.argv[2], "rb").read()
if sys.argv[2] == "exported":
    from jax import export
    call = jax.jit(export.deserialize(bytearray(stored)).call)
else:
    from jax.experimental.serialize_executable import deserialize_and_load
    call = deserialize_and_load(*pickle.loads(stored), execution_devices=jax.devices())
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

SCENARIOS = ("off", "cold", "warm")
LOADED = ("exported", "executable")


def stopwatch(folder: Path, name: str) -> dict[str, float]:
    """Return the seconds of a first call in each scenario, each in a process of its own."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        written = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        there = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(folder)}
        for scenario in random.choice([SCENARIOS, ("cold", "warm", "off")]):
            own = {"JAX_ENABLE_COMPILATION_CACHE": "0"} if scenario == "off" else written
            done = took([sys.executable, "-c", STOPWATCH, name], cwd=folder, **there, **own)
            found[scenario] = float(done.out)
        there["JAX_ENABLE_COMPILATION_CACHE"] = "0"
        took([sys.executable, "-c", MAKING, name], cwd=Path(cache), **there)
        for scenario in LOADED if name != "solve" else LOADED[:1]:
            done = took([sys.executable, "-c", LOADING, name, scenario], cwd=Path(cache), **there)
            found[scenario] = float(done.out)
    return found


def main() -> None:
    given = options(__doc__, rounds=8, seed=0, only="")
    random.seed(given.seed)
    watch: dict[str, list[dict[str, float]]] = {}
    frames = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "functions.py").write_text(FUNCTIONS)
        (folder / "five.py").write_text(WORKLOADS)
        paths = filter(None, [str(folder), os.environ.get("PYTHONPATH")])
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path.insert(0, str(folder))
        found = {one.__name__: one for one in workloads(folder=folder)}
        found = {name: found[name] for name in given.only.split(",")} if given.only else found

        def by_harness(name: str, number: int) -> None:
            frames[name] = harness.sweep(
                found[name],
                effort="1x1",
                scenarios=(*SCENARIOS, *LOADED),
                first_calls=number + 1,  # what there is already is not measured again
                results=folder / "results",
            )

        def by_stopwatch(name: str, number: int) -> None:
            watch.setdefault(name, []).append(stopwatch(folder, name))

        for number in range(given.rounds):
            for name in random.sample(list(found), len(found)):
                ways = (by_harness, by_stopwatch)
                in_turns(1, {way.__name__: functools.partial(way, name, number) for way in ways})
    print(f"{'median (least), ms':16s} {'harness':>14s} {'stopwatch':>14s}  ratio   collector")
    for name in found:
        show(name, frames[name], pd.DataFrame(watch[name]))


def show(name: str, frame: pd.DataFrame, watch: pd.DataFrame) -> None:
    """Print the lines of one function."""
    rows = frame[frame["stage"] == "first_call"].set_index("scenario")
    taken = [name for name in (*SCENARIOS, *LOADED) if name in watch]
    ours, theirs = (
        one[taken].agg(["median", "min"])
        for one in (pd.DataFrame(rows["samples"].to_dict()), watch)
    )
    ratios = ours / theirs
    for scenario in taken:
        times = " ".join(
            f"{one['median'] * 1e3:6.0f} ({one['min'] * 1e3:5.0f})"
            for one in (ours[scenario], theirs[scenario])
        )
        middle, least = ratios[scenario]
        collected_ms = rows["collected_s"][scenario] * 1e3
        print(
            f"{name:8s} {scenario:10s} {times}   {middle:.2f} ({least:.2f}) {collected_ms:4.0f} ms"
        )
    warm = [one["warm"] / one["cold"] for one in (ours, theirs, ratios)]
    texts = (f"{one['median']:6.3f} ({one['min']:.3f})" for one in warm[:2])
    of_both = f"{warm[2]['median']:.2f} ({warm[2]['min']:.2f})"
    print(f"{name:8s} warm/cold   {' '.join(texts)}   {of_both}")


if __name__ == "__main__":
    main()
