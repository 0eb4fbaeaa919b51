"""Ratios of times taken in turns: their median, and the interval that n of them allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Paired(NamedTuple):
    """The median of paired ratios with its 95 % interval, NaN with fewer than 6 pairs."""

    ratio: float
    low: float
    high: float
    pairs: int

    def text(self) -> str:
        """Return the ratio as a change: `+0.8 % (-0.3 to +1.9 %, 24 pairs)`."""
        if math.isnan(self.low):
            return f"{self.ratio - 1:+.1%} ({self.pairs} pairs: too few for an interval)"
        between = f"{self.low - 1:+.1%} to {self.high - 1:+.1%}"
        return f"{self.ratio - 1:+.1%} ({between}, {self.pairs} pairs)"


def paired(over: Sequence[float], under: Sequence[float]) -> Paired:
    """Return the median of `over[i] / under[i]`; its interval is from the binomial distribution."""
    ratios = np.asarray(over) / np.asarray(under)
    low = high = math.nan
    if len(ratios) >= 6:
        ordered = np.sort(ratios)
        # The order statistics that hold the median with at least 95 % (W. J. Conover, Practical
        # Nonparametric Statistics, 3.2).
        rank = int(stats.binom.ppf(0.025, len(ratios), 0.5))
        low, high = ordered[rank - 1], ordered[len(ratios) - rank]
    return Paired(float(np.median(ratios)), float(low), float(high), len(ratios))
