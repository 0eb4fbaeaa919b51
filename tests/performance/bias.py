"""Whether the harness's `execute` is what a bare loop measures in the same process.

    python -m tests.performance.bias [--rounds 40]

For programs of 10 microseconds and more, the harness's block timing and a bare loop over
`perf_counter_ns`, of as many calls, take turns in random order in one process. Printed is the ratio
of the medians over all rounds, with the interval of the median of the ratios round by round.
Target: within 1 %.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time

import jax

from harness.declare.inputs import fill
from harness.declare.workload import Case, Workload, spec
from harness.stages import sampling
from harness.stages.blocks import Calls, Grouping, group, time_blocks
from harness.stages.passes import gc_off
from harness.stages.prepared import prepare, wrap
from harness.watch import evidence
from tests.performance.command import options


class Gelu(Workload):
    """Elementwise: from a few microseconds up."""

    sweep = {"size": [2**12, 2**14, 2**16, 2**18, 2**20]}

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jax.nn.gelu(x)


class Matmul(Workload):
    """A matrix product."""

    sweep = {"size": [128, 256, 512]}

    def inputs(self, size):
        return spec((size, size)), spec((size, size))

    @staticmethod
    def function(a, b):
        return a @ b


def bare(call, arguments, plan: Grouping) -> float:
    """Return nanoseconds per call of a bare loop: the least of as many readings."""
    least = math.inf
    turns = range(plan.number)
    for _ in range(plan.readings):
        begin = time.perf_counter_ns()
        for _ in turns:
            jax.block_until_ready(call(*arguments))
        end = time.perf_counter_ns()
        least = min(least, end - begin)
    return least / plan.number


def compare(workload: type[Workload], case: Case, rounds: int) -> tuple[float, list[float]]:
    """Return the bare loop's median in nanoseconds, and harness / bare for each round."""
    prepared = prepare(workload, case)
    call = wrap(prepared)
    arguments = tuple(jax.device_put(fill(prepared.arguments)))
    jax.block_until_ready(call(*arguments))
    calls = Calls(call, itertools.repeat(arguments), jax.block_until_ready)
    with gc_off():
        plan = group(calls)
    plan = Grouping(1, plan.readings, plan.number, 0)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        turns = ["ours", "theirs"]
        random.shuffle(turns)
        for turn in turns:
            with gc_off():
                if turn == "ours":
                    ours += time_blocks(calls, plan).samples_ns
                else:
                    theirs.append(bare(call, arguments, plan))
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    print(
        f"{workload.__name__:8s} {case.id.partition(', transform')[0]:14s} "
        f"{statistics.median(theirs) / 1e3:10.1f} us  "
        f"{statistics.median(ours) / statistics.median(theirs):.4f}",
        end="  ",
    )
    return statistics.median(theirs), ratios


def main() -> None:
    """Compare every case, and print a line for each."""
    given = options(__doc__, rounds=40)
    evidence.Evidence()  # what is registered while the harness measures
    print("workload case             bare loop   ratio of medians   median of ratios [95 %]")
    for workload in (Gelu, Matmul):
        for size in workload.sweep["size"]:
            _, ratios = compare(workload, Case({"size": size}), given.rounds)
            ranks = sampling.median_interval_ranks(len(ratios))
            assert ranks is not None, "give at least 6 rounds"
            ordered = sorted(ratios)
            low, high = ordered[ranks[0]], ordered[ranks[1]]
            print(f"         {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()
