"""Does a comparison find a difference where there is none: one side against itself.

    python -m tools.performance.baseline_aa [--processes 8] [--passes 3]

Each side is measured in processes that are interleaved with those of the other sides. Every second
process of a side is one arm, the others are the other arm; printed is the ratio of the arms'
medians, for each size and number of threads. Target: within 3 % of one.
"""

import pandas as pd

from harness import Workload, spec
from harness.stages.registry import stage_of
from tools.performance.command import options, swept

TARGET = 0.03


class Chain(Workload):
    """An elementwise chain, small and large."""

    sweep = {"size": [2**10, 2**20]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def baseline(xp, x):
        return xp.tanh(x) * xp.exp(-x * x) + xp.sin(x)

    @staticmethod
    def function(x):
        import jax.numpy as jnp

        return Chain.baseline(jnp, x)


def main() -> None:
    given = options(__doc__, processes=8, passes=3)  # processes of each arm
    outcome = swept(
        [Chain],
        f"{2 * given.processes}x{given.passes}",
        machine="aa",
        with_baselines=True,
        keep=lambda case: "kind" not in case.axes,
    )
    rows = [
        {
            **{"backend": found.backend, "threads": found.threads, "size": record.axes["size"]},
            **{"stage": stage, "us": stage_of(stage).statistic(samples) / 1e3},
            "arm": int(record.replicate.rpartition("#")[2]) % 2,
        }
        for record in outcome.records
        if (found := record.comparison) and record.status == "ok" and "kind" not in record.axes
        for stage in ("slope", "latency")
        if (samples := record.stages[stage].samples_ns)
    ]
    ratios = []
    for place, own in pd.DataFrame(rows).groupby(["backend", "threads", "size", "stage"]):
        backend, threads, size, stage = place
        even, odd = own.groupby("arm")["us"].median()
        ratios.append(odd / even)
        low, middle, high = own["us"].quantile([0.25, 0.5, 0.75])
        print(
            f"{backend:6s} {threads:4s} size {size:8d} {stage:8s} ratio {ratios[-1]:.3f}  median "
            f"{middle:10.2f} µs, quartiles {low / middle:.2f} to {high / middle:.2f} of it, "
            f"{len(own)} processes"
        )
    within = sum(abs(ratio - 1) <= TARGET for ratio in ratios)
    print(f"{within} of {len(ratios)} ratios within {TARGET:.0%} of one")


if __name__ == "__main__":
    main()
