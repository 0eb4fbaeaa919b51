"""The ratio of two times, each known from several processes, and its interval."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from typing import NamedTuple

LEAST_PROCESSES = 3
"""Per side; with fewer there is no interval."""

CONFIDENCE = 0.95


class Ratio(NamedTuple):
    """A ratio and its interval, NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Return `over` / `under`: of the medians, with a 95 % interval.

    The interval is Welch's (B. L. Welch, Biometrika 34 (1947) 28-35, as in
    :func:`scipy.stats.ttest_ind`) for the difference of the means of the logarithms, which is the
    ratio of the geometric means: times of processes scatter in proportion, so their logarithms are
    nearer to a normal distribution, and neither equal spread nor equal n is assumed. It is
    widened, where a stray process makes that necessary, to hold the ratio of the medians. Rank
    intervals (Hodges-Lehmann) reach 95 % only from 4 processes on, and a bootstrap of so few values
    is too narrow.

    Args:
        over: one time per process, all above 0; at least one.
        under: the same of the other side.
    """
    value = statistics.median(over) / statistics.median(under)
    if min(len(over), len(under)) < LEAST_PROCESSES:
        return Ratio(value)
    if len(set(over)) == len(set(under)) == 1:  # no spread at all: Welch's formula divides by it
        return Ratio(value, value, value)
    from scipy import stats

    with warnings.catch_warnings():
        # Of values that are all but equal: the interval is then as narrow as it should be.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        found = stats.ttest_ind(
            [math.log(one) for one in over], [math.log(one) for one in under], equal_var=False
        ).confidence_interval(CONFIDENCE)
    return Ratio(value, min(math.exp(found.low), value), max(math.exp(found.high), value))
