"""The ratio of times that are known from several processes each, and its interval."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEAST_PROCESSES = 3
"""Per side; with fewer there is no interval."""

CONFIDENCE = 0.95
"""Of the interval that is shown."""


class Ratio(NamedTuple):
    """A ratio and its interval, NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Return `over` / `under`: of the medians, with a 95 % interval.

    Times of processes scatter in proportion, so the interval is that of their logarithms' means:
    with x = ln under and y = ln over, of n and m processes,

        exp(mean(y) - mean(x) ± t(0.975, df) * sqrt(var(x) / n + var(y) / m))

    with Welch's degrees of freedom: neither equal spread nor equal numbers are assumed. Source:
    B. L. Welch, Biometrika 34 (1947) 28-35, as in :func:`scipy.stats.ttest_ind` with
    `equal_var=False`. Rank intervals (Hodges-Lehmann) reach 95 % only from 4 processes on, and a
    bootstrap of so few values is too narrow. It is widened, where a stray process makes that
    necessary, to hold the ratio of the medians.

    Args:
        over: one time per process, all above 0; at least one.
        under: the same of the other side.
    """
    from scipy import stats  # a second that no other reader of this file needs

    value = statistics.median(over) / statistics.median(under)
    if min(len(over), len(under)) < LEAST_PROCESSES:
        return Ratio(value)
    if len(set(over)) == len(set(under)) == 1:  # the logarithms would be off in the last digit
        return Ratio(value, value, value)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # Of values that are all but equal: the interval is then as narrow as it should be.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        test = stats.ttest_ind(np.log(over), np.log(under), equal_var=False)
        low, high = np.exp(test.confidence_interval(CONFIDENCE))
    return Ratio(value, float(np.nanmin([low, value])), float(np.nanmax([high, value])))
