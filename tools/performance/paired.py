"""Ratios of times taken in turns: their median, and the interval that n of them allow."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.stages.sampling import median_interval_ranks


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


def paired(over: Sequence[float], under: Sequence[float] | float = 1.0) -> Paired:
    """Return the median of `over[i] / under[i]`; its interval is from the binomial distribution."""
    ratios = np.sort(np.asarray(over) / np.asarray(under))
    ranks = median_interval_ranks(len(ratios))
    low, high = (math.nan, math.nan) if ranks is None else ratios[list(ranks)]
    return Paired(float(np.median(ratios)), float(low), float(high), len(ratios))
