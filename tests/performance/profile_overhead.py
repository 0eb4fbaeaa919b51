"""What a profile costs the program that is profiled, and what is left of it afterwards.

    python -m tests.performance.profile_overhead [--how context|command] [--pairs 24]

Three figures, all ratios of times taken in turns:

- a training loop in steady state, 10,000 steps and more, profiled and not (target: at most 2 %);
- a program that compiles 500 functions, profiled and not (at most 5 %);
- the loop after a profile has ended, and where there was none; and what is still installed.

With `--how context` a profile is open around every other stretch of the loop, in one process. With
`--how command` two processes are alive at the same time, one of them under `harness profile`, and
are asked for a stretch in turns; there the sampler runs too. Which of the two goes first is drawn.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.performance.command import in_turns, options
from tests.performance.paired import Paired, paired

LOOP_TARGET = 1.02
COMPILE_TARGET = 1.05
STEPS = 1_000
"""In one stretch."""
FUNCTIONS = 25
"""Compiled in one stretch; 20 stretches are a program of 500."""

CHILD = """
import sys
from tests.performance.profile_overhead import Program, left, profiled
program = Program()
for line in sys.stdin:
    name, number = line.split()
    if name == "profiled":
        with profiled("{scratch}"):
            program.compiles(int(number))
        print(left())
    else:
        print(getattr(program, name)(int(number)))
    sys.stdout.flush()
"""


class Program:
    """A small training loop, and functions to compile; the persistent cache is off."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp
        import numpy as np

        jax.config.update("jax_enable_compilation_cache", False)

        def loss(weights, x, y):
            hidden = jnp.tanh(x @ weights[0])
            return jnp.mean((hidden @ weights[1] - y) ** 2)

        @jax.jit
        def step(weights, x, y):
            value, slopes = jax.value_and_grad(loss)(weights, x, y)
            return [w - 0.01 * s for w, s in zip(weights, slopes, strict=True)], value

        random = np.random.default_rng(0)
        self._jax, self._jnp, self._step = jax, jnp, step
        self._weights = [
            jnp.asarray(random.normal(size=shape), jnp.float32) for shape in ((32, 64), (64, 1))
        ]
        self._batches = [
            (
                np.asarray(random.normal(size=(64, 32)), np.float32),
                np.asarray(random.normal(size=(64, 1)), np.float32),
            )
            for _ in range(16)
        ]
        self._compiled = 0
        self.loop(100)

    def loop(self, steps: int) -> float:
        """Return the seconds of some steps, which compile nothing."""
        weights, value = self._weights, None
        begin = time.perf_counter()
        for number in range(steps):
            weights, value = self._step(weights, *self._batches[number % 16])
            if number % 100 == 0:
                float(value)
        self._jax.block_until_ready(weights)
        return time.perf_counter() - begin

    def compiles(self, functions: int) -> float:
        """Return the seconds of the first calls of some new functions, all different."""
        jnp = self._jnp
        x = self._batches[0][0]
        begin = time.perf_counter()
        for _ in range(functions):
            self._compiled += 1
            by = float(self._compiled)

            def fresh(x, by=by):
                return jnp.sum(jnp.tanh(x * by) @ jnp.sin(x.T + by))

            self._jax.jit(fresh)(x).block_until_ready()
        return time.perf_counter() - begin


@contextmanager
def profiled(scratch: str) -> Iterator[None]:
    """Open a profile in a folder of its own."""
    import harness

    with harness.profile(tempfile.mkdtemp(dir=scratch)):
        yield


def installed() -> dict[str, object]:
    """Return what a profile replaces, and JAX's listeners, as they are now."""
    from jax._src import monitoring

    from harness.errors import HarnessError
    from harness.watch import jax_names

    found = {}
    for who, names in (("profile", jax_names.BUILDS), ("ledger", jax_names.REQUESTS)):
        points = jax_names.points(names, who, HarnessError)
        found |= {f"{who}: {role}": at.function for role, at in points.items()}
    lists = {name: value for name, value in vars(monitoring).items() if isinstance(value, list)}
    return found | {name: tuple(value) for name, value in lists.items()}


_before: dict[str, object] = {}


def left() -> str:
    """Return what is not what it was when this was first called, `nothing` if all is."""
    now = installed()
    _before.update({name: value for name, value in now.items() if name not in _before})
    return ",".join(n.replace(" ", "") for n in now if now[n] != _before[n]) or "nothing"


class Child:
    """A process that runs stretches on request."""

    def __init__(self, prefix: list[str], scratch: str) -> None:
        code = CHILD.replace("{scratch}", scratch)
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if prefix else None,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def ask(self, name: str, number: int = 0) -> str:
        """Run a stretch and return what it answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name} {number}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"the process that was asked for {name} ended: see above")
        return answer

    def end(self) -> None:
        """Let the process come to its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def in_context(name: str, number: int, pairs: int, scratch: str) -> tuple[Paired, float]:
    """Return the ratio of stretches in one process, and a profile's opening and closing."""
    program = Program()
    with profiled(scratch):  # imports what only the first profile imports
        getattr(program, name)(number)

    def stretch() -> float:
        return float(getattr(program, name)(number))

    def in_profile() -> tuple[float, float]:
        begin = time.perf_counter()
        with profiled(scratch):
            spent = stretch()
        return spent, time.perf_counter() - begin - spent

    found, without = in_turns(pairs, {"with": in_profile, "without": stretch}).values()
    with_it, around = zip(*found, strict=True)
    return paired(with_it, without), statistics.median_high(around)


def by_command(name: str, number: int, pairs: int, scratch: str, processes: int) -> Paired:
    """Return the ratio of stretches in two processes at a time, one under `harness profile`."""
    with_it, without = [], []
    for round_number in range(processes):
        folder = f"{scratch}/{name}{round_number}"
        prefix = [sys.executable, "-m", "harness", "profile", "-o", folder, "--"]
        arms = {"with": Child(prefix, scratch), "without": Child([], scratch)}
        for child in arms.values():
            child.ask(name, number)
        seconds = asked(max(1, pairs // processes), arms, name, number)
        if not list(Path(folder).glob("*.jsonl")):
            raise SystemExit(f"`harness profile` wrote nothing into {folder}")
        # A process as a whole is faster or slower than another: it counts once.
        middle = paired(seconds["with"], seconds["without"])
        with_it.append(middle.ratio)
        without.append(1.0)
    return paired(with_it, without)


def asked(rounds: int, arms: dict[str, Child], name: str, number: int) -> dict[str, list[float]]:
    """Return the seconds that a stretch took in each process, in turns; then they end."""
    asks = {arm: lambda child=child: float(child.ask(name, number)) for arm, child in arms.items()}
    found = in_turns(rounds, asks)
    for child in arms.values():
        child.end()
    return found


def afterwards(pairs: int, scratch: str) -> tuple[Paired, str]:
    """Return the ratio of the loop after a profile to one without, and what was left installed."""
    after, never, found = [], [], set()
    for _ in range(pairs):
        arms = {"after": Child([], scratch), "never": Child([], scratch)}
        for arm in arms.values():
            arm.ask("compiles", FUNCTIONS)
        arms["after"].ask("loop", STEPS)
        for _ in range(2):
            found.add(arms["after"].ask("profiled", FUNCTIONS))
        arms["never"].ask("compiles", 2 * FUNCTIONS)
        seconds = asked(10, arms, "loop", STEPS)
        after.append(paired(seconds["after"][1:], seconds["never"][1:]).ratio)
        never.append(1.0)
    return paired(after, never), ", ".join(sorted(found - {"nothing"})) or "nothing"


def main() -> None:
    """Print the figures; exit with 1 where one is above its target, or something is left."""
    given = options(__doc__, how=("context", "command"), pairs=24, processes=6)
    missed = False

    def say(what: str, found: Paired, target: float, more: str = "") -> None:
        nonlocal missed
        missed = missed or found.ratio > target
        print(f"{what}: {found.text()}{more} (target: at most {target - 1:+.0%})", flush=True)

    with tempfile.TemporaryDirectory(prefix="harness-overhead-") as scratch:
        arguments = (("loop", STEPS), ("compiles", FUNCTIONS))
        names = (
            f"loop of {given.pairs * STEPS:,} steps",
            f"{given.pairs * FUNCTIONS} compiles",
        )
        for (name, number), what, target in zip(
            arguments, names, (LOOP_TARGET, COMPILE_TARGET), strict=True
        ):
            if given.how == "context":
                found, around_s = in_context(name, number, given.pairs, scratch)
                more = f"; opening and closing, once: {around_s * 1e3:.1f} ms"
            else:
                found = by_command(name, number, given.pairs, scratch, given.processes)
                more = ""
            say(f"{given.how}: {what}", found, target, more)
        if given.how == "context":
            found, what = afterwards(given.processes, scratch)
            say("after the profile: the loop", found, LOOP_TARGET, f"; still installed: {what}")
            missed = missed or what != "nothing"
    sys.exit(missed)


if __name__ == "__main__":
    main()
