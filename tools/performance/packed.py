"""How long a program starts on a cache that was unpacked, next to a warm one of its own and none.

    python -m tools.performance.packed --rounds 7

A training step of 24 layers is packed after one run, unpacked into a fresh folder each time, and
started there, in turns with starts on the directory that it filled and on an empty one.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from tools.performance.command import HARNESS, in_turns, options, spread, took

PROGRAM = """
import jax, jax.numpy as jnp
def loss(w, x):
    for layer in w: x = jnp.tanh(x @ layer)
    return (x**2).mean()
step = jax.jit(lambda w, x: jax.tree.map(lambda a, g: a - 0.1 * g, w, jax.grad(loss)(w, x)))
w = [jax.random.normal(jax.random.key(i), (64, 64)) for i in range(24)]
jax.block_until_ready(step(w, jnp.ones((32, 64))))
"""
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
}


def main() -> None:
    given = options(__doc__, rounds=7)
    with tempfile.TemporaryDirectory(prefix="harness-packed-") as name:
        folder = Path(name)
        program, own, pack = folder / "train.py", folder / "own", folder / "cache.zip"
        program.write_text(PROGRAM)
        command = [*HARNESS, "cache", "pack", "-o", pack, "--directory", own, "--", program]
        took(command, **SETTINGS)

        def start(directory: Path) -> float:
            there = {**SETTINGS, "JAX_COMPILATION_CACHE_DIR": str(directory)}
            return took([sys.executable, program], **there).wall_s

        def fresh() -> Path:
            return Path(tempfile.mkdtemp(dir=folder), "cache")

        def unpacked() -> float:
            directory = fresh()
            took([*HARNESS, "cache", "unpack", pack, directory])
            return start(directory)

        arms = {"cold": lambda: start(fresh()), "warm": lambda: start(own), "unpacked": unpacked}
        seconds = in_turns(given.rounds, arms)
    warm = statistics.median(seconds["warm"])
    for kind, values in seconds.items():
        print(f"{kind}: {spread(values)}, {statistics.median(values) / warm:.2f} of warm")


if __name__ == "__main__":
    main()
