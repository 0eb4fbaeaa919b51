"""How often a case is measured: efforts, the order of visits, and when to stop."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import find_name
from harness.stages.blocks import BLOCKS

NARROW = 0.05
"""`thorough` stops when half of the interval of the median is at most this part of the median."""


@dataclass(frozen=True)
class Effort:
    """How many processes measure a case, and how many passes each makes."""

    name: str
    processes: int
    passes: int
    limit: int
    """Processes at the most: more than `processes` where the effort adapts."""

    @property
    def protocol(self) -> str:
        """What one process does; processes of one protocol may be pooled."""
        return f"{self.passes} passes x least calls of {BLOCKS} blocks"

    @property
    def adaptive(self) -> bool:
        """Whether processes are added until the interval of the median is narrow enough."""
        return self.limit > self.processes


EFFORTS = {
    "quick": Effort("quick", 1, 1, 1),
    "default": Effort("default", 8, 1, 8),
    "thorough": Effort("thorough", 8, 1, 32),
}


def effort(text: str) -> Effort:
    """Return the effort called `text`: a name, or `PROCESSESxPASSES` such as `6x1`."""
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", text)
    if not match:
        return EFFORTS[find_name(text, EFFORTS, "effort", ", or PROCESSESxPASSES such as 6x1")]
    processes = int(match[1])
    return Effort(text, processes, int(match[2]), processes)


def visits(cases: Sequence[str], passes: int, seed: int) -> list[tuple[int, str]]:
    """Return (pass, case) in the order of measuring: all cases once per pass, shuffled anew."""
    rng = random.Random(seed)
    order = []
    for number in range(passes):
        once = list(cases)
        rng.shuffle(once)
        order += [(number, case) for case in once]
    return order


LEVEL = 0.95
"""Confidence of the intervals of medians."""


def median_interval_ranks(n: int, level: float = LEVEL) -> tuple[int, int] | None:
    """Return the ranks (from 0) of the order statistics that enclose the median, or None.

    The interval [x(k), x(n-1-k)] covers the median with probability 1 - 2 P(B <= k), where B is
    binomial(n, 1/2); k is the largest that keeps this at `level`. Fewer than 6 values cannot
    reach 95 %. Source: David and Nagaraja, Order Statistics, 3rd edition, section 7.1.
    """
    from scipy.special import bdtr  # the binomial distribution; scipy.stats takes 3 x as long

    k = -1
    while bdtr(k + 1, n, 0.5) <= (1 - level) / 2:
        k += 1
    return (k, n - 1 - k) if k >= 0 else None


def is_narrow(values: Sequence[float], share: float = NARROW) -> bool:
    """Tell whether the median of `values` is known well enough to stop."""
    ranks = median_interval_ranks(len(values))
    if ranks is None:
        return False
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return (ordered[ranks[1]] - ordered[ranks[0]]) / 2 <= share * middle
