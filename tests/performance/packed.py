"""How long a program starts on a cache that was unpacked, next to a warm one of its own and none.

    python -m tests.performance.packed --rounds 7

A training step of 24 layers is packed after one run, unpacked into a fresh folder each time, and
started there, in turns with starts on the directory that it filled and on an empty one.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.performance.command import in_turns, options, took

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
    """Measure, and print medians and ratios."""
    given = options(__doc__, rounds=7)
    with tempfile.TemporaryDirectory(prefix="harness-packed-") as name:
        folder = Path(name)
        program, own, pack = folder / "train.py", folder / "own", folder / "cache.zip"
        program.write_text(PROGRAM)
        command = [sys.executable, "-m", "harness", "cache"]
        there = {**os.environ, **SETTINGS}
        took([*command, "pack", "-o", pack, "--directory", own, "--", program], env=there)

        def start(directory: Path) -> float:
            there["JAX_COMPILATION_CACHE_DIR"] = str(directory)
            return took([sys.executable, program], env=there).wall_s

        def fresh() -> Path:
            return Path(tempfile.mkdtemp(dir=folder), "cache")

        def unpacked() -> float:
            directory = fresh()
            took([*command, "unpack", pack, directory])
            return start(directory)

        arms = {"cold": lambda: start(fresh()), "warm": lambda: start(own), "unpacked": unpacked}
        seconds = in_turns(given.rounds, arms)
        warm = statistics.median(seconds["warm"])
        for kind, values in seconds.items():
            middle = statistics.median(values)
            spread = f"{min(values):.3f}–{max(values):.3f}"
            print(f"{kind}: {middle:.3f} s ({spread}), {middle / warm:.2f} of warm")


if __name__ == "__main__":
    main()
