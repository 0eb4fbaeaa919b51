"""The tests that verdicts rest on: of rows, of all rows together, and of single processes.

Everything is in logarithms, because times scatter in proportion. Rows that have no value of a
process hold NaN there.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.frame.ratios import CONFIDENCE, LEAST_PROCESSES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NO_SPREAD = 1e-20
"""Less is the rounding of equal values."""

_LEAST_ROWS = 5
"""Of fewer rows nothing is learnt about how much the spread of rows differs."""


class Estimates(NamedTuple):
    """What is known of ratios; each float64 (rows,)."""

    ratio: Floats
    """Of the geometric means."""
    p: Floats
    """Probability of a difference at least as large if the ratio were 1."""
    error: Floats
    """The standard error of its logarithm."""
    freedom: Floats
    share: float

    def interval(self, adjusted: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of the ratios, each float64 (rows,).

        They miss with probability 5 % x share; where there is an `adjusted` p, with that times p /
        adjusted, so that the interval leaves out 1 where the adjusted p is below 5 %, and only
        there. Source: Y. Benjamini and D. Yekutieli, J. Am. Stat. Assoc. 100 (2005) 71-81, whose
        intervals of selected parameters are corrected by the same factor as their p.
        """
        part = np.ones_like(self.p)
        if adjusted is not None:
            positive = np.nan_to_num(adjusted) > 0
            part[positive] = self.p[positive] / adjusted[positive]
        # Of values without any spread the interval is the ratio itself.
        half = -special.stdtrit(self.freedom, (1 - CONFIDENCE) * self.share * part / 2) * self.error
        middle = np.log(self.ratio)
        return np.exp(middle - half), np.exp(middle + half)


def estimates(a: Floats, b: Floats, paired: bool = False, share: float = 1.0) -> Estimates:
    """Return the ratios exp(b - a) of rows, what their intervals are made of, and p for 1.

    With x = a of n processes and y = b of m, and s² their common variance, or that of y - x where
    they are pairs,

        t = (mean(y) - mean(x)) / (s sqrt(1 / n + 1 / m)),    pairs: mean(y - x) / (s / sqrt(n))

    A variance of few processes is itself uncertain. Rows of one stage scatter alike, so each is
    drawn towards what is usual among them, the less the more rows differ in it, and t has the more
    degrees of freedom: s² becomes (d0 s0² + d s²) / (d0 + d) with d0 + d of them. d0 and s0² come
    from the mean and the variance of log s². Source: G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3
    (2004) 3, sections 3 and 6.2.

    Rank tests of few processes cannot reach the small p that a family of many rows needs (8 against
    8: 1.6e-4 at the least), and trimmed means lose degrees of freedom there. Of fewer than three
    processes a side only the ratio is told.

    Where values are looked at several times as they come, `share` is the part of the error that
    this look may make (:func:`harness.verdicts.live.rounds.share`): p is divided by it, and the
    intervals miss with their probability times it (repeated confidence intervals, C. Jennison and
    B. W. Turnbull, J. R. Statist. Soc. B 51 (1989) 305-361).

    Args:
        a: logarithms, float64 (rows, processes), NaN where there is none.
        b: the same of the other side; where `paired`, processes in the order of their partners.
        paired: processes of both sides took turns, so what a pair shares is no scatter.
        share: above 0, at most 1.
    """
    difference, variance, scale, freedom, enough = _difference(a, b, paired)
    variance, freedom = _moderated(variance, freedom)
    error = np.sqrt(variance * scale)
    p = np.minimum(_p(difference, error, freedom, enough) / share, 1)
    return Estimates(np.exp(difference), p, error, freedom, share)


def rises(a: Floats, b: Floats, paired: bool = False, share: float = 1.0) -> tuple[Floats, Floats]:
    """Return by how much rows rose from `a` to `b`, and p for no rise at all; each float64 (rows,).

    The rise is the difference of the medians, 0 where it is less than three robust standard
    deviations (1.4826 MAD) of either side, or of the pairs. Arguments as in :func:`estimates`, but
    in seconds, which may be negative; and rows are no measure of each other's spread.
    """
    difference, variance, scale, freedom, enough = _difference(a, b, paired)
    p = _p(difference, np.sqrt(variance * scale), freedom, enough)
    sides = [b - a] if paired else [a, b]
    centres = [medians(side.T) for side in sides]
    rise = centres[-1] - (0 if paired else centres[0])
    spread = np.max(
        [medians(np.abs(s - c[:, None]).T) for s, c in zip(sides, centres, strict=True)], axis=0
    )
    return np.where(np.abs(rise) >= 3 * 1.4826 * spread, rise, 0.0), np.minimum(p / share, 1)


def _difference(a: Floats, b: Floats, paired: bool) -> tuple[Floats, Floats, Floats, Floats, Bools]:
    """Return mean(b) - mean(a), its variance, the scale and degrees of freedom of that.

    The last says where there are enough processes for any of it; the variance is NaN elsewhere.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without any value stay NaN
        if paired:
            x = b - a
            n = np.count_nonzero(~np.isnan(x), axis=1)
            difference, variance = np.nanmean(x, axis=1), np.nanvar(x, axis=1, ddof=1)
            freedom, scale = n - 1.0, 1 / n
        else:
            n_a, n_b = (np.count_nonzero(~np.isnan(side), axis=1) for side in (a, b))
            n = np.minimum(n_a, n_b)
            difference = np.nanmean(b, axis=1) - np.nanmean(a, axis=1)
            squares = np.nanvar(a, axis=1) * n_a + np.nanvar(b, axis=1) * n_b
            freedom = n_a + n_b - 2.0
            variance, scale = squares / freedom, 1 / n_a + 1 / n_b
    enough = n >= LEAST_PROCESSES
    variance = np.where(enough, np.where(variance < _NO_SPREAD, 0.0, variance), np.nan)
    return difference, variance, scale, freedom, enough


def _p(difference: Floats, error: Floats, freedom: Floats, enough: Bools) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(freedom, -np.abs(difference / error))
    return np.where(enough & (error == 0), np.where(np.abs(difference) < 1e-12, 1.0, 0.0), p)


def _moderated(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    positive = np.nan_to_num(variance) > 0
    if np.count_nonzero(positive) < _LEAST_ROWS:
        return variance, freedom
    half = freedom[positive] / 2
    logs = np.log(variance[positive]) - special.digamma(half) + np.log(half)
    beyond = logs.var(ddof=1) - special.polygamma(1, half).mean()
    prior = 1e6  # all rows have one variance
    if beyond > 1e-5:
        from scipy import optimize  # half as long to import as all the rest

        prior = 2 * optimize.brentq(lambda x: special.polygamma(1, x) - beyond, 1e-4, 1e6)
    usual = math.exp(logs.mean() + special.digamma(prior / 2) - math.log(prior / 2))
    moderated = np.where(
        positive, (prior * usual + freedom * variance) / (prior + freedom), variance
    )
    return moderated, np.where(positive, prior + freedom, freedom)


def counting(ratio: Floats, effect: Floats) -> Bools:
    """Return which ratios differ from 1 by at least the effect; False where one is NaN."""
    return (ratio >= 1 + effect) | (ratio <= 1 / (1 + effect))


def adjust(p: Floats, counts: Bools) -> Floats:
    """Return p corrected for the number of rows of a family, NaN where p is NaN.

    Benjamini and Hochberg's step-up (J. R. Statist. Soc. B 57 (1995) 289-300): of rows called
    different at `alpha`, at most the share `alpha` is expected to be wrong; where nothing differs
    at all, the probability of calling any row different is at most `alpha`.

    The more rows differ for certain, the less the step-up asks of the others. Only a row whose
    change counts can be called different, so only such rows may do that for each other: among them
    p of all other rows is taken as 1, which is never too small. Else a release that makes a stage
    a little slower everywhere would have chance findings in it called real.

    `p` is NaN for a row that was not tested; `counts`: its change is at least the smallest that
    counts.
    """
    adjusted = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        every = _step_up(p[tested])
        counting = _step_up(np.where(counts, p, 1.0)[tested])
        adjusted[tested] = np.where(counts[tested], counting, every)
    return adjusted


def _step_up(p: Floats) -> Floats:
    """Return what :func:`scipy.stats.false_discovery_control` does."""
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return adjusted


def p_of_share(count: int, of: int, elsewhere: int, of_elsewhere: int) -> float:
    """Return how probable it is to see `count` or more `of` where nothing is special about them.

    Elsewhere `elsewhere` of `of_elsewhere` were seen, so one is expected with the chance
    (elsewhere + 1/2) / (of_elsewhere + 1): the mean under Jeffreys' prior.
    """
    # The binomial distribution's own; scipy.stats takes a second to be imported.
    return float(special.betainc(count, of - count + 1, (elsewhere + 0.5) / (of_elsewhere + 1)))


def medians(values: Floats) -> Floats:
    """Return the median of each column, leaving out NaN; NaN for a column of nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=0), np.float64)
