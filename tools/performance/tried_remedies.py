"""What the answer of a profile says that a remedy saves, against what it saves.

    python -m tools.performance.tried_remedies [--functions 30]

A program of so many functions, each of another size and with an argument that is static, at times a
Python number, or of several lengths, is profiled; `harness profile try` then applies each remedy
alone (target: within 20 % in 20 findings).
"""

import json
import sys
import tempfile
from pathlib import Path

from tests import forks
from tools.performance.command import options

PROGRAM = """
import functools, sys
import jax, jax.numpy as jnp, numpy as np

x = jnp.ones((16, 16))
"""
WEAK = """
@jax.jit
def weak_{number}(x, by):
    for _ in range({size}):
        x = jnp.tanh(x @ x) * by
    return x
weak_{number}(x, jnp.float32(2)), weak_{number}(x, 2.0)
"""
STATIC = """
@functools.partial(jax.jit, static_argnames="n")
def static_{number}(x, n):
    for _ in range({size}):
        x = jnp.sin(x @ x) * n
    return x
for n in range({values}):
    static_{number}(x, n)
"""
LENGTH = """
@jax.jit
def length_{number}(rows):
    for _ in range({size}):
        rows = jnp.tanh(rows @ x)
    return rows.sum()
for n in range(5, 6 + {values}):
    length_{number}(np.ones((n, 16), np.float32))
"""


def main() -> None:
    given = options(__doc__, functions=30)
    text = PROGRAM
    for number in range(given.functions):
        kind = (WEAK, STATIC, LENGTH)[number % 3]
        text += kind.format(number=number, size=5 + 4 * number, values=3 + number % 4)
    with tempfile.TemporaryDirectory(prefix="harness-tried-") as scratch:
        script, folder = Path(scratch) / "train.py", Path(scratch) / "p"
        script.write_text(text)
        forks.harness("profile", "-o", folder, "--", sys.executable, script)
        command = ("profile", "try", folder, "--most", given.functions, "--format", "json")
        rows = json.loads(forks.harness(*command).stdout)
    ratios = [row["saved_s"] / row["predicted_s"] for row in rows]
    for row, ratio in zip(rows, ratios, strict=True):
        sizes = f"{row['predicted_s']:.2f} s predicted, {row['saved_s']:.2f} s saved"
        print(f"{row['remedy']}: {sizes}: {ratio:.2f} {row['failed']}")
    within = sum(0.8 <= ratio <= 1.2 for ratio in ratios)
    print(f"within 20 %: {within} of {len(rows)}")
    sys.exit(within < 20)


if __name__ == "__main__":
    main()
