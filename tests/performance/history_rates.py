"""How often noise is taken for a change point, and how many nights until a step is found.

    python -m tests.performance.history_rates [--series 300] [--noise 0.02]

On synthetic normal noise in log time, every point of equal weight, smallest effect 5 %.
"""

from __future__ import annotations

import numpy as np

from harness.verdicts.history.steps import levels
from tests.performance.command import options

EFFECT = 0.05
LENGTHS = (4, 6, 8, 10, 15, 30)
STEPS = (1.1, 1.2, 1.5)
NIGHTS = (1, 2, 3, 5, 10)
BEFORE = 20


def rate(count: int, points: int, noise: float, step: float = 1.0, at: int = 0) -> float:
    """Return the share of `count` series of `points` points in which there is a change point."""
    rng = np.random.default_rng(points)
    hits = 0
    for _ in range(count):
        values = np.exp(rng.normal(0, noise, points))
        values[at:] *= step
        hits += len(levels(values, np.full(points, np.nan), EFFECT)) > 1
    return hits / count


def main() -> None:
    """Print both tables."""
    given = options(__doc__, series=300, noise=0.02)
    print(f"noise {given.noise:.0%}, {given.series} series each")
    for points in LENGTHS:
        print(f"no step, {points} points: {rate(given.series, points, given.noise):.1%}")
    for step in STEPS:
        found = [
            f"{rate(given.series, BEFORE + nights, given.noise, step, BEFORE):.0%}"
            for nights in NIGHTS
        ]
        print(f"step {step - 1:.0%}, found after {NIGHTS} nights: {', '.join(found)}")


if __name__ == "__main__":
    main()
