"""How often noise is taken for a change point, and how many nights until a step is found.

    python -m tools.performance.history_rates [--series 300] [--noise 0.02]

On synthetic normal noise in log time, every point of equal weight, smallest effect 5 %.
"""

import numpy as np

from harness.verdicts.history.steps import levels
from tools.performance.command import options

NIGHTS = (1, 2, 3, 5, 10)
BEFORE = 20


def rate(count: int, points: int, noise: float, step: float = 1.0) -> str:
    """Return the share of series in which there is a change point; one steps after `BEFORE`."""
    rng = np.random.default_rng(points)
    hits = 0
    for _ in range(count):
        values = np.exp(rng.normal(0, noise, points))
        values[BEFORE:] *= step
        hits += len(levels(values, np.full(points, np.nan), 0.05)) > 1
    return f"{hits / count:.1%}"


def main() -> None:
    given = options(__doc__, series=300, noise=0.02)
    print(f"noise {given.noise:.0%}, {given.series} series each")
    for points in (4, 6, 8, 10, 15, 30):
        print(f"no step, {points} points: {rate(given.series, points, given.noise)}")
    for step in (1.1, 1.2, 1.5):
        found = [rate(given.series, BEFORE + more, given.noise, step) for more in NIGHTS]
        print(f"step {step - 1:.0%}, found after {NIGHTS} nights: {', '.join(found)}")


if __name__ == "__main__":
    main()
