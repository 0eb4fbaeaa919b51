"""A power law through samples: how one thing grows with another, and whether it does so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

POWER_LAW, CURVED, TWO_VALUES, ONE_VALUE = "power law", "curved", "two values", "one value"

LEAST_DEVIATION = 0.1
"""A median within this part of the fitted line does not make it curved, however sure it is."""

LEAST_P = 0.01
"""Curved needs a lack of fit that processes alone would show less often than this."""


def fit(values: list[float], samples: list[list[float]]) -> dict[str, Any]:
    """Return how samples grow with a value, as seconds = a * value ** exponent.

    All values of one workload are measured by the same processes, so a process that is slow
    throughout moves the line and not its slope: intervals are rather too wide than too narrow.

    Args:
        values: positive, one per row.
        samples: seconds, a list per row. Those that are not positive and finite are left out.

    Returns:
        - `fit`: `power law`; `curved`, where the medians are off the line by more than 10 % and by
          more than processes scatter (F test of the lack of fit, p < 0.01); `two values`, through
          which there is always a line; `one value`, which gives none.
        - `exponent`, `low`, `high`: the slope of log(seconds) over log(value) by least squares
          (:func:`scipy.stats.linregress`), a point per value and process, and its 95 % interval,
          exponent ± t(0.975, n_samples - 2) * standard error.
        - `r2`: how much of the scatter of the logarithms the line explains.
        - `deviation`: the largest |median / line - 1|.
        - `n_values`, `n_samples`: distinct values, and points.
        - `least`, `most`, `least_s`, `most_s`: the smallest and the largest value, and the median
          seconds there.

        NaN where there is too little to fit; {} without a positive sample.
    """
    points: dict[float, list[float]] = {}
    for value, taken in zip(values, samples, strict=True):
        good = [seconds for seconds in taken if seconds > 0 and math.isfinite(seconds)]
        if good:
            points.setdefault(float(value), []).extend(good)
    if not points:
        return {}
    at = sorted(points)
    medians = [float(np.median(points[value])) for value in at]
    fitted: dict[str, Any] = {
        **dict.fromkeys(("exponent", "low", "high", "r2", "deviation"), math.nan),
        "fit": ONE_VALUE,
        "n_values": len(at),
        "n_samples": sum(map(len, points.values())),
        **{"least": at[0], "most": at[-1], "least_s": medians[0], "most_s": medians[-1]},
    }
    if len(at) == 1:
        return fitted
    groups = [np.log(points[value]) for value in at]
    x = np.log(np.repeat(at, [len(group) for group in groups]))
    y = np.concatenate(groups)
    n = len(y)
    line = stats.linregress(x, y)
    fitted_log = line.intercept + line.slope * np.log(at)
    deviation = float(np.max(np.abs(np.exp(np.log(medians) - fitted_log) - 1)))
    # Of equal times scipy knows neither a standard error, which is 0, nor r, which nobody knows.
    equal = bool(np.ptp(y) == 0)
    error = 0.0 if equal else float(line.stderr)
    half = float(stats.t.ppf(0.975, n - 2)) * error if n > 2 else math.nan
    fitted |= {
        "exponent": float(line.slope),
        "low": float(line.slope) - half,
        "high": float(line.slope) + half,
        "r2": math.nan if equal else float(line.rvalue) ** 2,
        "deviation": deviation,
    }
    if len(at) == 2:
        return {**fitted, "fit": TWO_VALUES}
    within = float(sum(np.sum((group - group.mean()) ** 2) for group in groups))
    lack = float(
        sum(len(g) * (g.mean() - on) ** 2 for g, on in zip(groups, fitted_log, strict=True))
    )
    curved = deviation > LEAST_DEVIATION and _p(lack, len(at) - 2, within, n - len(at)) < LEAST_P
    return {**fitted, "fit": CURVED if curved else POWER_LAW}


def _p(lack: float, lack_df: int, within: float, within_df: int) -> float:
    """Return the p of a lack of fit: F = (lack / its degrees) / (scatter / its degrees).

    Without scatter, as from a single process, whatever is off the line is a lack of fit.
    """
    if within_df < 1 or within <= 0:
        return 0.0
    return float(stats.f.sf((lack / lack_df) / (within / within_df), lack_df, within_df))
