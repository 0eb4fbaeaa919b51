"""Does a comparison find a difference where there is none: one side against itself.

    python -m tests.performance.baseline_aa [--processes 8] [--passes 3]

Each side is measured in processes that are interleaved with those of the other sides. Every second
process of a side is one arm, the others are the other arm; printed is the ratio of the arms'
medians, for each size and number of threads. Target: within 3 % of one.
"""

from __future__ import annotations

import statistics
from typing import Any

import jax.numpy as jnp

from harness import Workload, spec
from harness.records.schema import Record
from harness.stages.registry import value_ns
from tests.performance.command import options, swept

TARGET = 0.03
STAGES = ("slope", "latency")


class Chain(Workload):
    """An elementwise chain, small and large."""

    sweep = {"size": [2**10, 2**20]}
    targets = ("cpu",)

    def inputs(self, size: int) -> Any:
        """Return one vector."""
        return spec((size,))

    @staticmethod
    def function(x: Any) -> Any:
        """Return a vector."""
        return jnp.tanh(x) * jnp.exp(-x * x) + jnp.sin(x)

    @staticmethod
    def baseline(xp: Any, x: Any) -> Any:
        """Return a vector."""
        return xp.tanh(x) * xp.exp(-x * x) + xp.sin(x)


def main() -> None:
    """Measure, and print a line for each side, size, threads and stage."""
    given = options(__doc__, processes=8, passes=3)  # processes of each arm
    outcome = swept(
        [Chain],
        f"{2 * given.processes}x{given.passes}",
        machine="aa",
        with_baselines=True,
        keep=lambda case: "kind" not in case.axes,
    )
    arms: dict[tuple[Any, ...], tuple[list[float], list[float]]] = {}
    for record in outcome.records:
        _sort(record, arms)
    ratios = []
    for (backend, threads, size, stage), (even, odd) in sorted(arms.items()):
        ratio = statistics.median(odd) / statistics.median(even)
        ratios.append(ratio)
        spread = statistics.quantiles(even + odd, n=4)
        print(
            f"{backend:6s} {threads:4s} size {size:8d} {stage:8s} ratio {ratio:.3f}  median "
            f"{spread[1] / 1e3:10.2f} µs, quartiles {spread[0] / spread[1]:.2f} to "
            f"{spread[2] / spread[1]:.2f} of it, {len(even)} + {len(odd)} processes"
        )
    within = sum(abs(ratio - 1) <= TARGET for ratio in ratios)
    print(f"{within} of {len(ratios)} ratios within {TARGET:.0%} of one")


def _sort(record: Record, arms: dict[tuple[Any, ...], tuple[list[float], list[float]]]) -> None:
    found = record.comparison
    if found is None or record.status != "ok" or "kind" in record.axes:
        return
    number = int(record.replicate.rpartition("#")[2])
    for stage in STAGES:
        samples = record.stages[stage].samples_ns
        if samples:
            key = (found.backend, found.threads, record.axes["size"], stage)
            arms.setdefault(key, ([], []))[number % 2].append(value_ns(stage, samples))


if __name__ == "__main__":
    main()
