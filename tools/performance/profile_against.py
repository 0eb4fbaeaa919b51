"""What a profile costs with this tree and with another one, in turns: CPU seconds of programs.

    python -m tools.performance.profile_against --tree FOLDER [--rounds 8]

FOLDER holds a checkout of another commit. Each program runs bare, under `harness profile` of this
tree, and under that of the other, each in a process of its own; which goes first is drawn. The
first two figures are of a stretch inside the process, after a first one; the last is of the whole
process, from its start to the prompt. Printed are the medians, and the median of the differences
to the bare run of the same round. The exit code is 1 where this tree costs more than the other, by
more than a tenth of what that costs.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable

from tools.performance.command import HARNESS, ROOT, in_turns, options, took

BEGIN = """
import sys, time, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_compilation_cache", False)
def timed(stretch):
    stretch(0)
    begin = time.process_time()
    stretch(1)
    print("took", time.process_time() - begin, flush=True)
"""
PROGRAMS = {
    "a loop of 20,000 steps": BEGIN
    + """
step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
w, x = jnp.ones((64, 8)), np.ones((32, 64), np.float32)
def stretch(turn):
    global w
    for _ in range(20_000):
        w = step(w, x)
    w.block_until_ready()
timed(stretch)
""",
    "600 builds": BEGIN
    + """
x = np.ones((8, 8), np.float32)
def stretch(turn):
    for n in range(600 * turn or 20):
        jax.jit(lambda x, by=n + turn: jnp.sum(jnp.tanh(x * by) @ jnp.sin(x.T + by)))(x)
timed(stretch)
""",
    "a whole process": "import jax\njax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((99, 99)))",
}


def seconds(code: str, tree: str | None) -> float:
    """Return the CPU seconds of a program, under the profile of a tree or bare."""
    with tempfile.TemporaryDirectory(prefix="harness-against-") as scratch:
        bare = [sys.executable, "-c", code]
        profiled = [*HARNESS, "profile", "-o", f"{scratch}/p", "--"] if tree else []
        done = took([*profiled, *bare], PYTHONPATH=tree or "", JAX_PLATFORMS="cpu")
    inside = [line.split()[1] for line in done.out.splitlines() if line.startswith("took ")]
    return float(inside[0]) if inside else done.cpu_s


def main() -> None:
    given = options(__doc__, tree="", rounds=8)
    trees = {"bare": None, "this tree": str(ROOT), "the other": os.path.abspath(given.tree)}
    more = False
    for name, code in PROGRAMS.items():
        arms: dict[str, Callable[[], float]] = {
            arm: lambda code=code, tree=tree: seconds(code, tree) for arm, tree in trees.items()
        }
        bare, *both = in_turns(given.rounds, arms).values()
        middle, added = statistics.median(bare), []
        print(f"{name}: bare {middle:.2f} s of CPU", end="")
        for arm, times in zip(list(trees)[1:], both, strict=True):
            added.append(statistics.median(b - a for a, b in zip(bare, times, strict=True)))
            print(f"; {arm} {added[-1]:+.3f} s ({added[-1] / middle:+.1%})", end="")
        print(flush=True)
        more |= added[0] > added[1] + 0.1 * abs(added[1])
    sys.exit(more)


if __name__ == "__main__":
    main()
