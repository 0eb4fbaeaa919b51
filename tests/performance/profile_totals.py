"""Are a profile's stage seconds those of an independent stopwatch around the same calls?

    python -m tests.performance.profile_totals [--passes 6]

Twenty functions of several sizes, new objects in every pass: first `.trace()`, `.lower()` and
`.compile()`, each with a clock around it, then a first call and three more, whose least is taken
off. Printed per stage are both sums over all functions and passes (target: within 5 %), what is
left when the seconds are added that the profile says it took itself, and counts, which have to be
exact.

That stopwatch runs inside the profile, and so has the profile's own time in it. Then the same
functions are traced and lowered in pairs, one of each pair while the profile looks away: printed is
the median of what it says of the one over the stopwatch of the other, and has the same target.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.performance.command import options

TARGET = 0.05
STAGES = ("trace", "lower", "compile")


def functions(salt: int) -> list[tuple[Callable[..., Any], Any]]:
    """Return twenty functions with an argument each; `salt` makes their programs new ones."""
    import jax
    import jax.numpy as jnp
    import numpy as np

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

    found = []
    for make, depths in (
        (chain, (1, 2, 4, 8, 16, 32)),
        (nested, (1, 4, 16, 40)),
        (looped, (2, 8, 32, 128, 512)),
        (sloped, (1, 2, 4, 8, 16)),
    ):
        found += [(make(depth), np.full((16, 16), 0.5, np.float32)) for depth in depths]
    return found


def main() -> None:
    """Print a line per stage; exit with 1 where a target is missed."""
    given = options(__doc__, passes=6)
    import jax

    import harness

    jax.config.update("jax_enable_compilation_cache", False)
    jax.block_until_ready([jax.jit(function)(x) for function, x in functions(0)[:1]])
    own: Counter[str] = Counter()
    calls = 0
    with tempfile.TemporaryDirectory() as folder, harness.profile(folder) as found:
        for salt in range(1, given.passes + 1):
            for function, x in functions(2 * salt):
                jitted = jax.jit(function)
                clock = [time.perf_counter()]
                traced = jitted.trace(x)
                clock.append(time.perf_counter())
                lowered = traced.lower()
                clock.append(time.perf_counter())
                lowered.compile()
                clock.append(time.perf_counter())
                for stage, begin, end in zip(STAGES, clock, clock[1:], strict=False):
                    own[stage] += end - begin
                calls += 1
            for function, x in functions(2 * salt + 1):
                jitted = jax.jit(function)
                took = []
                for _ in range(4):
                    begin = time.perf_counter()
                    jitted(x).block_until_ready()
                    took.append(time.perf_counter() - begin)
                own["first call"] += took[0] - min(took[1:])
    missed = False
    for kind in (*STAGES, "first call"):
        name = "call" if kind == "first call" else kind
        builds = [built for built in found.builds if built.line.kind == name]
        if kind == "first call":
            seconds = sum(built.build_ns for built in builds) / 1e9
            times = [sum(built.times(stage) for built in builds) for stage in STAGES]
            expected = [calls] * 3
        else:
            seconds = sum(built.stage_ns(kind) for built in builds) / 1e9
            times, expected = [sum(built.times(kind) for built in builds)], [calls]
        off = seconds / own[kind] - 1
        added = sum(built.line.own_ns for built in builds) / 1e9
        left = (seconds + added) / own[kind] - 1
        exact = len(builds) == calls and times == expected
        missed = missed or abs(off) > TARGET or not exact
        print(
            f"{kind:10s} stopwatch {own[kind]:.4f} s, profile {seconds:.4f} s: {off:+.1%} "
            f"(target: within {TARGET:.0%}), {left:+.1%} with its own; {len(builds)} builds, "
            f"{times} done, of {calls} calls"
        )
    for stage, ratio in beside_unrecorded(given.passes).items():
        missed = missed or abs(ratio) > TARGET
        print(f"{stage:10s} {ratio:+.1%} of a stopwatch that has no profile in it, by the median")
    sys.exit(missed)


def beside_unrecorded(passes: int) -> dict[str, float]:
    """Return what a profile says of a stage, over what the stage takes where it looks away."""
    import jax

    import harness
    from harness.watch import session

    bare: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, harness.profile(folder) as found:
        assert session._recorder is not None
        source = session._recorder.builds
        for salt in range(1, passes + 1):
            pairs = zip(functions(1000 + 2 * salt), functions(1001 + 2 * salt), strict=True)
            for number, pair in enumerate(pairs):
                for which in (0, 1) if (number + salt) % 2 else (1, 0):
                    source.active = bool(which)
                    function, x = pair[which]
                    jitted = jax.jit(function)
                    clock = [time.perf_counter()]
                    traced = jitted.trace(x)
                    clock.append(time.perf_counter())
                    traced.lower()
                    clock.append(time.perf_counter())
                    if not which:
                        bare.append((clock[1] - clock[0], clock[2] - clock[1]))
        source.active = True
    ratios = {}
    for stage, seconds in zip(STAGES, zip(*bare, strict=True), strict=False):
        told = [built.stage_ns(stage) / 1e9 for built in found.builds if built.line.kind == stage]
        both = zip(told, seconds, strict=True)
        ratios[stage] = statistics.median(one / other for one, other in both) - 1
    return ratios


if __name__ == "__main__":
    main()
