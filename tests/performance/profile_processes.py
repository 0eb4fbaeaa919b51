"""What `harness profile --` adds to a program as a whole, from its start to the prompt.

    python -m tests.performance.profile_processes [--pairs 5]

Each program runs bare and profiled in turns, in processes of its own; which goes first is drawn. Of
both stands the median, and the median of the differences of pairs (target: at most 0.4 s and 3 %).
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time

from tests.performance.command import options

FIXED_S, SHARE = 0.4, 0.03

JIT = "import jax, jax.numpy as jnp\n"
PROGRAMS = {
    "nothing": "pass",
    "import jax": JIT,
    "one function": JIT
    + "jax.jit(lambda x: (x @ x).sum())(jnp.ones((99, 99))).block_until_ready()",
    "200 functions": JIT
    + "for n in range(200): jax.jit(lambda x: jnp.sin(x @ x + n).sum())(jnp.ones((9, 9)))",
    "a loop of steps": JIT
    + "step = jax.jit(lambda x: jnp.sin(x @ x))\nx = jnp.ones((400, 400))\n"
    + "for n in range(5000): x = step(x)\nx.block_until_ready()",
}


def seconds(command: list[str]) -> float:
    """Return how long a command takes, its output unread."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Print a line for each program; exit with 1 where more is added than the target."""
    given = options(__doc__, pairs=5)
    missed = False
    for name, code in PROGRAMS.items():
        bare, profiled = [], []
        for _ in range(given.pairs):
            for arm in random.sample((bare, profiled), 2):
                with tempfile.TemporaryDirectory(prefix="harness-processes-") as scratch:
                    prefix = [
                        "-m",
                        "harness",
                        "profile",
                        "-o",
                        f"{scratch}/p",
                        "--",
                        sys.executable,
                    ]
                    before = prefix if arm is profiled else []
                    arm.append(seconds([sys.executable, *before, "-c", code]))
        added = statistics.median(b - a for a, b in zip(bare, profiled, strict=True))
        most = FIXED_S + SHARE * statistics.median(bare)
        missed |= added > most
        middle = f"{statistics.median(bare):.2f} s, profiled {statistics.median(profiled):.2f} s"
        print(f"{name}: {middle}: {added:+.2f} s (target: at most {most:+.2f} s)", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
