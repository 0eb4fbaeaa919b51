"""Follow remedies of a profile to the letter, and compare results and builds with the prediction.

    python -m tools.profile_remedies [NAME ...]

Of each program in pairs.py: the remedy is reported, the program with the remedy followed returns
the same, and both build as predicted. Where a remedy has a condition, the program that leaves it
out returns something else, or raises. The exit code is the number of pairs that went otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import harness
from harness.output.profile_remedies import remedy_text
from harness.profiles.causes.cause import Remedy
from harness.profiles.findings import findings
from harness.profiles.model import count_of
from tools.profile_remedies import pairs
from tools.profile_remedies.pairs import Pair

OUTSIDE = ("small", "large", "loop", "shard_map")
"""Kinds of findings about JAX's own functions outside jit."""


def judged(pair: Pair) -> tuple[list[str], str]:
    """Return what is otherwise than predicted, and the remedy."""
    *programs, careless = [*pair.make(), None][:3]
    (expected, before), (followed, after) = map(profiled, programs)
    wrong, remedy = [], advised(pair, before)
    if remedy is None:
        causes = before.frame("causes")[["function", "cause", "argument"]].values.tolist()
        wrong.append(f"the remedy was not reported; causes: {causes}")
    elif remedy.kind not in pair.remedy.split("|"):
        wrong.append(f"remedy {remedy.kind}, expected {pair.remedy}")
    if not equal(expected, followed):
        wrong.append(f"results differ: {expected} {followed}")
    counts = tuple(built(pair, profile) for profile in (before, after))
    predicted = tuple(
        n if want is None and n > counts[1] else want
        for n, want in zip(counts, pair.builds, strict=True)
    )
    if counts != predicted:
        wrong.append(f"builds: {counts}, predicted {pair.builds}")
    if careless is not None:
        try:
            others = profiled(careless)[0]
        except Exception as error:
            others = [type(error).__name__]
        if equal(expected, others):
            wrong.append("without its condition the remedy returns the same")
    return wrong, remedy_text(remedy)


def profiled(run: pairs.Run) -> tuple[list[Any], Any]:
    """Return the results of a program, and its profile."""
    jax.clear_caches()
    with harness.profile(sample_ms=0) as profile:
        results = run()
    return [np.asarray(one) for one in results], profile


def equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether results are the same, but for the rounding of operations that are fused."""
    if len(one) != len(other):
        return False
    return all(
        not isinstance(b, str)
        and a.shape == b.shape
        and a.dtype == b.dtype
        and np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-5, atol=1e-6)
        for a, b in zip(one, other, strict=True)
    )


def built(pair: Pair, profile: Any) -> int:
    """Return how many programs were built, of one function or at all."""
    if not pair.of:
        return sum(one.compiles for one in profile.builds)
    return count_of([one for one in profile.builds if one.function.name == pair.of])


def advised(pair: Pair, profile: Any) -> Remedy | None:
    """Return the remedy of the cause that is expected; None where it is not reported."""
    for one in findings(profile):
        if pair.cause == "eager" and one.remedy and one.kind in OUTSIDE:
            return one.remedy
        cause = one.cause
        if cause is None or cause.kind not in pair.cause.split("|") or cause.kind == "first":
            continue
        if one.remedy and f"{cause.argument}.".startswith(f"{pair.argument}."):
            return one.remedy
    # What is only traced or differentiated is no finding of its own.
    causes = (profile.cause_of(one) for one in profile.builds)
    return next((one.remedy for one in causes if one.kind == pair.cause and one.remedy), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these pairs only")
    options = parser.parse_args()
    jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
    jax.config.update("jax_num_cpu_devices", 2)
    jax.jit(lambda: 0)()
    bad = 0
    chosen = [pair for pair in pairs.ALL if pair.name in options.names or not options.names]
    for pair in chosen:
        wrong, remedy = judged(pair)
        bad += bool(wrong)
        print(f"{'WRONG' if wrong else 'right':6} {pair.name}: {remedy}", flush=True)
        for one in wrong:
            print(f"       {one}")
    print(f"jax {jax.__version__}: {len(chosen) - bad} of {len(chosen)} remedies right")
    sys.exit(min(bad, 100))


if __name__ == "__main__":
    main()
