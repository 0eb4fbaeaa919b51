"""The test behind verdicts: whether two samples of times differ, and by how much.

Everything that decides whether a difference is one stands here, so that it can be exchanged here.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CONFIDENCE = 0.95
"""Of the interval that is shown."""

EQUIVALENCE_CONFIDENCE = 0.90
"""Of the interval that must lie within the effect for `same`: two one-sided tests at 5 %."""


class Estimates(NamedTuple):
    """What is known of rows; each float64 (rows,)."""

    ratio: Floats
    """Time of B / time of A; above 1, B is slower."""
    low: Floats
    high: Floats
    """The 95 % interval of the ratio."""
    equivalence_low: Floats
    equivalence_high: Floats
    """The 90 % interval of the ratio."""
    p: Floats
    """Probability of a difference at least as large if the ratio were 1."""


def estimate(a: Floats, b: Floats) -> Estimates:
    """Return the ratio of two arms, its intervals, and p for a ratio of 1, for rows of one size.

    Times of processes scatter in proportion, so their logarithms are compared: with x = ln a and
    y = ln b, of n and m processes,

        t = (mean(y) - mean(x)) / sqrt(var(x) / n + var(y) / m),    ratio = exp(mean(y) - mean(x))

    with Welch's degrees of freedom: neither equal spread nor equal numbers are assumed. Source:
    B. L. Welch, Biometrika 34 (1947) 28-35, as in :func:`scipy.stats.ttest_ind` with
    `equal_var=False`. Rank tests of few processes cannot reach the small p that a family of many
    rows needs (8 against 8: 1.6e-4 at the least), and trimmed means lose degrees of freedom there.

    Where neither side has any spread, the interval is the ratio itself, and p is 1 if it is 1 and
    else 0.

    Args:
        a: one value per process, float64 (rows, processes), all finite and above 0, at least two
            processes.
        b: the same of the other arm, with as many rows.
    """
    from scipy import stats

    x, y = np.log(a), np.log(b)
    difference = y.mean(axis=1) - x.mean(axis=1)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # Of values that are all but equal: the interval is then as narrow as it should be.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        found = stats.ttest_ind(y, x, axis=1, equal_var=False)
        inner = found.confidence_interval(EQUIVALENCE_CONFIDENCE)
        outer = found.confidence_interval(CONFIDENCE)
    flat = np.isnan(found.pvalue) | ~np.isfinite(outer.low) | ~np.isfinite(outer.high)
    p = np.where(flat, np.where(difference == 0, 1.0, 0.0), found.pvalue)
    low, high, inner_low, inner_high = (
        np.exp(np.where(flat, difference, bound))
        for bound in (outer.low, outer.high, inner.low, inner.high)
    )
    return Estimates(np.exp(difference), low, high, inner_low, inner_high, p)


def counting(ratio: Floats, effect: Floats) -> Bools:
    """Return which ratios differ from 1 by at least the effect; False where one is NaN."""
    return (ratio >= 1 + effect) | (ratio <= 1 / (1 + effect))


def adjust(p: Floats, counts: Bools) -> Floats:
    """Return p corrected for the number of rows, NaN where p is NaN.

    Benjamini and Hochberg's step-up (J. R. Statist. Soc. B 57 (1995) 289-300) by
    :func:`scipy.stats.false_discovery_control`: of rows called different at `alpha`, at most the
    share `alpha` is expected to be wrong; where nothing differs at all, the probability of calling
    any row different is at most `alpha`.

    The more rows differ for certain, the less the step-up asks of the others. Only a row whose
    change counts can be called different, so only such rows may do that for each other: among them
    p of all other rows is taken as 1, which is never too small. Else a release that makes one stage
    a little slower everywhere would have chance findings in other stages called real.

    Args:
        p: float64 (rows,), NaN for a row that was not tested.
        counts: whether the change of a row is at least the smallest that counts, bool (rows,).
    """
    from scipy import stats

    adjusted = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    if known.any():
        every = stats.false_discovery_control(p[known])
        counting = stats.false_discovery_control(np.where(counts, p, 1.0)[known])
        adjusted[known] = np.where(counts[known], counting, every)
    return adjusted
