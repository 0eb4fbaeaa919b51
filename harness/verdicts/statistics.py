"""Which ratios count, and what p says where many rows are judged together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
    adjusted = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    if known.any():
        every = stats.false_discovery_control(p[known])
        counting = stats.false_discovery_control(np.where(counts, p, 1.0)[known])
        adjusted[known] = np.where(counts[known], counting, every)
    return adjusted
