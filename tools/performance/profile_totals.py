"""Are a profile's stage seconds those of an independent stopwatch around the same calls?

    python -m tools.performance.profile_totals [--passes 6]

Twenty functions of several sizes, new objects in every pass: first `.trace()`, `.lower()` and
`.compile()`, each with a clock around it, then a first call and three more, whose least is taken
off. Printed per stage are both sums over all functions and passes (target: within 5 %), what is
left when the seconds are added that the profile says it took itself, and counts, which have to be
exact.

That stopwatch runs inside the profile, and so has the profile's own time in it. Then the same
functions are traced and lowered in pairs, one of each pair while the profile looks away: printed is
the median of what it says of the one over the stopwatch of the other, and has the same target.
"""

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import harness
from harness.jaxhooks import session
from tools.performance.command import options

TARGET = 0.05
STAGES = ("trace", "lower", "compile")
X = np.full((16, 16), 0.5, np.float32)


def functions(salt: int) -> list[Callable[..., Any]]:
    """Return twenty functions of `X`; `salt` makes their programs new ones."""

    def chain(depth: int) -> Callable[..., Any]:
        def chained(x):
            for number in range(depth):
                x = jnp.tanh(x * (number + 1.5 + salt)) + jnp.sin(x)
            return x

        return chained

    def nested(depth: int) -> Callable[..., Any]:
        @jax.jit
        def inner(x):
            return jnp.sort(x) * (1.5 + salt)

        def nesting(x):
            for _ in range(depth):
                x = inner(x) + jnp.where(x > salt, x, 0.0)
            return x

        return nesting

    def looped(depth: int) -> Callable[..., Any]:
        def looping(x):
            return jax.lax.fori_loop(0, depth, lambda i, y: jnp.tanh(y @ y) * (1.5 + salt), x)

        return looping

    def sloped(depth: int) -> Callable[..., Any]:
        return jax.grad(lambda x: jnp.sum(chain(depth)(x) @ x.T))

    depths = {
        chain: (1, 2, 4, 8, 16, 32),
        nested: (1, 4, 16, 40),
        looped: (2, 8, 32, 128, 512),
        sloped: (1, 2, 4, 8, 16),
    }
    return [make(depth) for make, own in depths.items() for depth in own]


def stopwatch(function: Callable[..., Any], stages: tuple[str, ...]) -> dict[str, float]:
    """Return the seconds of each stage of a function that is jitted anew."""
    made, arguments, spent = jax.jit(function), (X,), {}
    for stage in stages:
        begin = time.perf_counter()
        made = getattr(made, stage)(*arguments)
        spent[stage] = time.perf_counter() - begin
        arguments = ()
    return spent


def first_call(function: Callable[..., Any]) -> float:
    """Return the seconds of a first call less those of a later one."""
    jitted, spent = jax.jit(function), []
    for _ in range(4):
        begin = time.perf_counter()
        jitted(X).block_until_ready()
        spent.append(time.perf_counter() - begin)
    return spent[0] - min(spent[1:])


def main() -> None:
    given = options(__doc__, passes=6)
    jax.config.update("jax_enable_compilation_cache", False)
    jax.jit(functions(0)[0])(X).block_until_ready()
    own: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, harness.profile(folder) as found:
        for salt in range(1, given.passes + 1):
            for function in functions(2 * salt):
                own.update(stopwatch(function, STAGES))
            own["first call"] += sum(map(first_call, functions(2 * salt + 1)))
    calls = given.passes * len(functions(0))
    missed = False
    for kind in (*STAGES, "first call"):
        called = kind == "first call"
        builds = [one for one in found.builds if one.line.kind == ("call" if called else kind)]
        ns = [one.build_ns if called else one.stage_ns(kind) for one in builds]
        times = [
            sum(one.times(stage) for one in builds) for stage in (STAGES if called else [kind])
        ]
        seconds, added = sum(ns) / 1e9, sum(one.line.own_ns for one in builds) / 1e9
        off, left = seconds / own[kind] - 1, (seconds + added) / own[kind] - 1
        missed |= abs(off) > TARGET or {len(builds), *times} != {calls}
        print(
            f"{kind:10s} stopwatch {own[kind]:.4f} s, profile {seconds:.4f} s: {off:+.1%} "
            f"(target: within {TARGET:.0%}), {left:+.1%} with its own; {len(builds)} builds, "
            f"{times} done, of {calls} calls"
        )
    for stage, ratio in beside_unrecorded(given.passes).items():
        missed |= abs(ratio) > TARGET
        print(f"{stage:10s} {ratio:+.1%} of a stopwatch that has no profile in it, by the median")
    sys.exit(missed)


def beside_unrecorded(passes: int) -> dict[str, float]:
    """Return what a profile says of a stage, over what the stage takes where it looks away."""
    stages = STAGES[:2]
    bare: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, harness.profile(folder) as found:
        source = session._recorder.builds
        for salt in range(1, passes + 1):
            pairs = zip(functions(1000 + 2 * salt), functions(1001 + 2 * salt), strict=True)
            for number, pair in enumerate(pairs):
                for which in (0, 1) if (number + salt) % 2 else (1, 0):
                    source.active = bool(which)
                    spent = stopwatch(pair[which], stages)
                    bare += [] if which else [spent]
        source.active = True
    ratios = {}
    for stage in stages:
        told = [one.stage_ns(stage) / 1e9 for one in found.builds if one.line.kind == stage]
        both = zip(told, bare, strict=True)
        ratios[stage] = statistics.median(one / other[stage] for one, other in both) - 1
    return ratios


if __name__ == "__main__":
    main()
