"""What `harness profile --` adds to a program as a whole, from its start to the prompt.

    python -m tools.performance.profile_processes [--pairs 5]

Each program runs bare and profiled in turns, in processes of its own; which goes first is drawn. Of
both stands the median, and the median of the differences of pairs (target: at most 0.4 s and 3 %).
"""

import statistics
import sys
import tempfile

from tools.performance.command import HARNESS, in_turns, options, took

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


def main() -> None:
    given = options(__doc__, pairs=5)
    missed = False
    for name, code in PROGRAMS.items():
        bare = [sys.executable, "-c", code]

        def profiled(bare=bare) -> float:
            with tempfile.TemporaryDirectory(prefix="harness-processes-") as scratch:
                return took([*HARNESS, "profile", "-o", f"{scratch}/p", "--", *bare]).wall_s

        arms = {"bare": lambda bare=bare: took(bare).wall_s, "profiled": profiled}
        before, after = in_turns(given.pairs, arms).values()
        added = statistics.median(b - a for a, b in zip(before, after, strict=True))
        most = FIXED_S + SHARE * statistics.median(before)
        missed |= added > most
        middle = f"{statistics.median(before):.2f} s, profiled {statistics.median(after):.2f} s"
        print(f"{name}: {middle}: {added:+.2f} s (target: at most {most:+.2f} s)", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
