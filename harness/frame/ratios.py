"""The ratio of times that are known from several processes each, its intervals, and its test."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

LEAST_PROCESSES = 3
"""Per side; with fewer there is no interval."""

CONFIDENCE = 0.95
"""Of the interval that is shown."""

EQUIVALENCE_CONFIDENCE = 0.90
"""Of the interval that must lie within an effect for `same`: two one-sided tests at 5 %."""


class Estimates(NamedTuple):
    """What is known of ratios; each float64 (rows,)."""

    ratio: Floats
    """Of the geometric means, over / under."""
    low: Floats
    high: Floats
    """The 95 % interval of the ratio."""
    equivalence_low: Floats
    equivalence_high: Floats
    """The 90 % interval of the ratio."""
    p: Floats
    """Probability of a difference at least as large if the ratio were 1."""


def estimate(over: Floats, under: Floats) -> Estimates:
    """Return the ratios of two sides, their intervals, and p for a ratio of 1.

    Times of processes scatter in proportion, so their logarithms are compared: with x = ln under
    and y = ln over, of n and m processes,

        t = (mean(y) - mean(x)) / sqrt(var(x) / n + var(y) / m),    ratio = exp(mean(y) - mean(x))

    with Welch's degrees of freedom: neither equal spread nor equal numbers are assumed. Source:
    B. L. Welch, Biometrika 34 (1947) 28-35, as in :func:`scipy.stats.ttest_ind` with
    `equal_var=False`. Rank tests of few processes cannot reach the small p that a family of many
    rows needs (8 against 8: 1.6e-4 at the least), and trimmed means lose degrees of freedom there;
    rank intervals (Hodges-Lehmann) reach 95 % only from 4 processes on, and a bootstrap of so few
    values is too narrow.

    Where neither side has any spread, the interval is the ratio itself, and p is 1 if it is 1 and
    else 0.

    Args:
        over: one value per process, float64 (rows, processes), all finite and above 0, at least two
            processes.
        under: the same of the other side, with as many rows.
    """
    x, y = np.log(under), np.log(over)
    difference = y.mean(axis=1) - x.mean(axis=1)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # Of values that are all but equal: the interval is then as narrow as it should be.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        test = stats.ttest_ind(y, x, axis=1, equal_var=False)
        inner = test.confidence_interval(EQUIVALENCE_CONFIDENCE)
        outer = test.confidence_interval(CONFIDENCE)
    flat = np.isnan(test.pvalue) | ~np.isfinite(outer.low) | ~np.isfinite(outer.high)
    p = np.where(flat, np.where(difference == 0, 1.0, 0.0), test.pvalue)
    low, high, inner_low, inner_high = (
        np.exp(np.where(flat, difference, bound))
        for bound in (outer.low, outer.high, inner.low, inner.high)
    )
    return Estimates(np.exp(difference), low, high, inner_low, inner_high, p)


class Ratio(NamedTuple):
    """A ratio and its interval, NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Return `over` / `under`: of the medians, with a 95 % interval.

    The interval is that of the geometric means (:func:`estimate`), widened, where a stray process
    makes that necessary, to hold the ratio of the medians.

    Args:
        over: one time per process, all above 0; at least one.
        under: the same of the other side.
    """
    value = statistics.median(over) / statistics.median(under)
    if min(len(over), len(under)) < LEAST_PROCESSES:
        return Ratio(value)
    if len(set(over)) == len(set(under)) == 1:  # the logarithms would be off in the last digit
        return Ratio(value, value, value)
    one = estimate(np.array([over], float), np.array([under], float))
    return Ratio(value, min(float(one.low[0]), value), max(float(one.high[0]), value))
