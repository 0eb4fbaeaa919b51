"""What a profile costs the program that is profiled, and what is left of it afterwards.

    python -m tools.performance.profile_overhead [--how context|command] [--pairs 24]

Three figures, all ratios of times taken in turns:

- a training loop in steady state, 10,000 steps and more, profiled and not (target: at most 2 %);
- a program that compiles 500 functions, profiled and not (at most 5 %);
- the loop after a profile has ended, and where there was none; and what is still installed.

With `--how context` a profile is open around every other stretch of the loop, in one process. With
`--how command` two processes are alive at the same time, one of them under `harness profile`, and
are asked for a stretch in turns; there the sampler runs too. Which of the two goes first is drawn.
"""

import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import monitoring

import harness
from harness.errors import HarnessError
from harness.jaxhooks import jax_names
from tools.performance.command import HARNESS, in_turns, options
from tools.performance.paired import Paired, paired

STRETCHES = {"loop": 1_000, "compiles": 25}
"""Steps, and functions, of one stretch."""
TARGETS = {"loop": 1.02, "compiles": 1.05}

CHILD = """
import sys
from tools.performance.profile_overhead import Program
program = Program("{scratch}")
for line in sys.stdin:
    print(getattr(program, line.strip())(), flush=True)
"""


class Program:
    """Stretches of a small training loop, and of functions to compile, without persistent cache."""

    def __init__(self, scratch: str) -> None:
        jax.config.update("jax_enable_compilation_cache", False)

        def loss(weights, x, y):
            hidden = jnp.tanh(x @ weights[0])
            return jnp.mean((hidden @ weights[1] - y) ** 2)

        @jax.jit
        def step(weights, x, y):
            value, slopes = jax.value_and_grad(loss)(weights, x, y)
            return [w - 0.01 * s for w, s in zip(weights, slopes, strict=True)], value

        def normal(*shape: int) -> np.ndarray:
            return np.asarray(random.normal(size=shape), np.float32)

        random = np.random.default_rng(0)
        self._scratch, self._step, self._compiled = scratch, step, 0
        self._weights = [jnp.asarray(normal(32, 64)), jnp.asarray(normal(64, 1))]
        self._batches = [(normal(64, 32), normal(64, 1)) for _ in range(16)]
        self.loop(100)

    def loop(self, steps: int = STRETCHES["loop"]) -> float:
        """Return the seconds of some steps, which compile nothing."""
        weights, value = self._weights, None
        begin = time.perf_counter()
        for number in range(steps):
            weights, value = self._step(weights, *self._batches[number % 16])
            if number % 100 == 0:
                float(value)
        jax.block_until_ready(weights)
        return time.perf_counter() - begin

    def compiles(self) -> float:
        """Return the seconds of the first calls of some new functions, all different."""
        x = self._batches[0][0]
        begin = time.perf_counter()
        for _ in range(STRETCHES["compiles"]):
            self._compiled += 1
            by = float(self._compiled)

            def fresh(x, by=by):
                return jnp.sum(jnp.tanh(x * by) @ jnp.sin(x.T + by))

            jax.jit(fresh)(x).block_until_ready()
        return time.perf_counter() - begin

    def profiled(self, name: str = "compiles") -> tuple[float, float]:
        """Return the seconds of a stretch in a profile, and of its opening and closing."""
        begin = time.perf_counter()
        with harness.profile(tempfile.mkdtemp(dir=self._scratch)):
            spent = getattr(self, name)()
        return spent, time.perf_counter() - begin - spent

    def left(self) -> str:
        """Return what a profile has left installed, `nothing` if all is as before."""
        before = installed()
        for _ in range(2):
            self.profiled()
        now = installed()
        return ",".join(n.replace(" ", "") for n in now if now[n] != before[n]) or "nothing"


def installed() -> dict[str, object]:
    """Return what a profile replaces, and JAX's listeners, as they are now."""
    found = {}
    for who, names in (("profile", jax_names.BUILDS), ("ledger", jax_names.REQUESTS)):
        points = jax_names.points(names, who, HarnessError)
        found |= {f"{who}: {role}": at.function for role, at in points.items()}
    lists = {name: value for name, value in vars(monitoring).items() if isinstance(value, list)}
    return found | {name: tuple(value) for name, value in lists.items()}


class Child:
    """A process that runs stretches on request."""

    def __init__(self, scratch: str, *prefix: str) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-c", CHILD.replace("{scratch}", scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if prefix else None,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def ask(self, name: str) -> str:
        """Run a stretch and return what it answered."""
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        if answer := self._process.stdout.readline().strip():
            return answer
        raise SystemExit(f"the process that was asked for {name} ended: see above")

    def end(self) -> None:
        """Let the process come to its end."""
        self._process.communicate()


def in_context(name: str, pairs: int, scratch: str) -> tuple[Paired, str]:
    """Return the ratio of stretches in one process, and a profile's opening and closing."""
    program = Program(scratch)
    program.profiled(name)  # imports what only the first profile imports
    arms = {"with": lambda: program.profiled(name), "without": getattr(program, name)}
    found, without = in_turns(pairs, arms).values()
    with_it, around = zip(*found, strict=True)
    once_ms = statistics.median_high(around) * 1e3
    return paired(with_it, without), f"; opening and closing, once: {once_ms:.1f} ms"


def by_command(name: str, pairs: int, scratch: str, processes: int) -> tuple[Paired, str]:
    """Return the ratio of stretches in two processes at a time, one under `harness profile`."""
    ratios = []
    for number in range(processes):
        folder = f"{scratch}/{name}{number}"
        arms = [Child(scratch, *HARNESS, "profile", "-o", folder, "--"), Child(scratch)]
        for child in arms:
            child.ask(name)
        ratios.append(asked(max(1, pairs // processes), arms, name))
        if not list(Path(folder).glob("*.jsonl")):
            raise SystemExit(f"`harness profile` wrote nothing into {folder}")
    return paired(ratios), ""


def asked(rounds: int, arms: list[Child], name: str) -> float:
    """Return the ratio of a stretch in two processes, in turns; then they end.

    A process as a whole is faster or slower than another: it counts once.
    """
    turns = {
        number: lambda child=child: float(child.ask(name)) for number, child in enumerate(arms)
    }
    over, under = in_turns(rounds, turns).values()
    for child in arms:
        child.end()
    return paired(over, under).ratio


def afterwards(pairs: int, scratch: str) -> tuple[Paired, str]:
    """Return the ratio of the loop after a profile to one without, and what was left installed."""
    ratios, left = [], set()
    for _ in range(pairs):
        after, never = arms = [Child(scratch), Child(scratch)]
        for words in ("compiles", "loop"):
            after.ask(words)
        left.add(after.ask("left"))
        after.ask("loop")
        for words in ("compiles", "compiles", "compiles", "loop"):
            never.ask(words)
        ratios.append(asked(9, arms, "loop"))
    return paired(ratios), ", ".join(sorted(left - {"nothing"})) or "nothing"


def main() -> None:
    given = options(__doc__, how=("context", "command"), pairs=24, processes=6)
    missed = False

    def say(what: str, found: Paired, target: float, more: str) -> None:
        nonlocal missed
        missed |= found.ratio > target
        print(f"{what}: {found.text()}{more} (target: at most {target - 1:+.0%})", flush=True)

    with tempfile.TemporaryDirectory(prefix="harness-overhead-") as scratch:
        ways = {
            "context": in_context,
            "command": functools.partial(by_command, processes=given.processes),
        }
        for name, number in STRETCHES.items():
            found, more = ways[given.how](name, given.pairs, scratch)
            say(f"{given.how}: {given.pairs * number:,} of {name}", found, TARGETS[name], more)
        if given.how == "context":
            found, left = afterwards(given.processes, scratch)
            say("after the profile: the loop", found, TARGETS["loop"], f"; still installed: {left}")
            missed |= left != "nothing"
    sys.exit(missed)


if __name__ == "__main__":
    main()
