"""How long a comparison in turns takes, and what it finds of changes that were planted.

    python -m tools.performance.turns [--cases 2] [--busy 0] [--rounds 8] [PLANTED...]

Makes a repository with a workload of that many cases, of which the second commit has a planted
change: `nothing` (a comment), `steps` (a tenth more of a chain of operations), `waits` (0.1 s of
sleep in the function, so in its trace), `callback` (0.1 s of sleep in a `pure_callback`, so in its
calls); all of them without any. Runs `harness compare HEAD~1 HEAD` as a job of CI does, beside
--busy busy loops, and prints seconds of the clock and of the processor, and what it says.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from harness.jaxhooks.temporary import temporary_folder
from tools.performance.command import options

WORKLOAD = '''
import chain
from harness import Workload, spec


class Chain(Workload):
    """A chain of operations."""

    sweep = {"size": [%s]}
    targets = ("cpu",)

    def inputs(self, size):
        return (spec((size,), "float32"),)

    function = staticmethod(chain.function)
'''

CODE = """# %(comment)s
import time

import jax
import jax.numpy as jnp
import numpy as np


def late(x):
    time.sleep(%(late)s)
    return np.asarray(x)


def function(x):
    time.sleep(%(waits)s)
    for _ in range(%(steps)s):
        x = jax.nn.gelu(x) + 1
    if %(late)s >= 0:
        x = jax.pure_callback(late, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return x
"""

BASE = {"waits": 0, "steps": 20, "late": -1, "comment": ""}
PLANTED = {
    "nothing": ({}, {"comment": "the same\n"}),
    "steps": ({}, {"steps": 22}),
    "waits": ({}, {"waits": 0.1}),
    "callback": ({"late": 0}, {"late": 0.1}),
}


def commit(top: Path, **changed: object) -> None:
    """Commit the code with some values changed."""
    (top / "src" / "chain.py").write_text(CODE % {**BASE, **changed})
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.com")
    for words in (("add", "-A"), (*who, "commit", "-q", "-m", "chain")):
        subprocess.run(["git", "-C", str(top), *words], check=True)


def compared(top: Path, rounds: int) -> tuple[float, float, dict[str, object], str]:
    """Compare the last two commits; return both times, the document and the last message."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "harness", "compare", "HEAD~1", "HEAD", "--format", "json"]
    done = subprocess.run(
        [*command, "--effort", f"{rounds}x1"],
        cwd=top,
        env={**os.environ, "CI": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    cpu_s = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return wall_s, cpu_s, json.loads(done.stdout), done.stderr.strip().splitlines()[-1]


def main() -> None:
    given = options(__doc__, select=True, cases=2, busy=0, rounds=8)
    sizes = ", ".join(str(1024 + number) for number in range(given.cases))
    for name in given.select or PLANTED:
        before, after = PLANTED[name]
        with ExitStack() as stack:
            top = Path(stack.enter_context(temporary_folder()))
            for _ in range(given.busy):
                loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                stack.callback(loop.kill)
            for folder in ("benchmarks", "src"):
                (top / folder).mkdir()
            (top / "benchmarks" / "chains.py").write_text(WORKLOAD % sizes)
            subprocess.run(["git", "init", "-q", str(top)], check=True)
            commit(top, **before)
            commit(top, **{**before, **after})
            wall_s, cpu_s, document, last = compared(top, given.rounds)
        print(f"{name}: {wall_s:.0f} s, {cpu_s:.0f} s of CPU; {document['answer']}")
        print(f"  {document['counts']}; {last}")


if __name__ == "__main__":
    main()
