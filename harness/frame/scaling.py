"""How the time of each stage grows with an axis: a power law per case and stage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from harness.errors import UsageError
from harness.frame.cases import CASE, case_columns, check, check_axis, free_names, keys, measured
from harness.frame.frame import stage_order
from harness.frame.typed import takes_frame

POWER_LAW, CURVED, TWO_VALUES, ONE_VALUE = "power law", "curved", "two values", "one value"

LEAST_DEVIATION = 0.1
"""A median within this part of the fitted line does not make it curved, however sure it is."""

LEAST_P = 0.01
"""Curved needs a lack of fit that processes alone would show less often than this."""

_NUMBERS = ("exponent", "low", "high", "r2", "deviation", "least", "most", "least_s", "most_s")
_OWN = ("stage", "fit", "exponent", "low", "high", "r2", "deviation", "n_values", "n_samples")
COLUMNS = (*_OWN, "least", "most", "least_s", "most_s")
"""Columns of the fit, behind those that name the case."""


@takes_frame
def scaling(frame: pd.DataFrame, axis: str, stage: str | None = None) -> pd.DataFrame:
    """Return how each stage's time grows with an axis, as time = a * axis ** exponent.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.
        axis: an axis with numbers. Values that are no positive numbers are left out.
        stage: one stage; None means all.

    Returns:
        A row per workload and stage for each combination of the other axes:
        :data:`harness.frame.cases.CASE`, a column per other axis, `stage`, and

        - `fit`: `power law`; `curved`, where the medians are off the line by more than 10 % and by
          more than processes scatter (F test of the lack of fit, p < 0.01); `two values`, through
          which there is always a line; `one value`, which gives none.
        - `exponent`, `low`, `high`: the slope of log(seconds) over log(axis) by least squares
          (:func:`scipy.stats.linregress`), a point per value and process, and its 95 % interval,
          exponent ± t(0.975, n_samples - 2) * standard error. Read the interval where the fit is a
          power law: for a curve it says how sure the slope of the wrong line is.
        - `r2`: how much of the scatter of the logarithms the line explains. Near 0 where the time
          does not depend on the axis at all, so no measure of the fit.
        - `deviation`: the largest |median / line - 1|.
        - `n_values`, `n_samples`: values of the axis, and points.
        - `least`, `most`, `least_s`, `most_s`: the smallest and the largest value of the axis, and
          the median seconds there.

        float64 but for the counts; NaN where there is too little to fit.

        All values of one workload are measured by the same processes, so a process that is slow
        throughout moves the line and not its slope: intervals are rather too wide than too narrow.

    Raises:
        UsageError: this is no frame of results; it has no such axis or stage; or the axis holds no
            numbers.
    """
    check(frame, "harness.scaling", ["samples"])
    if not frame.empty:
        axis = check_axis(frame, axis)
    case = [name for name in case_columns(frame) if name != axis]
    names = free_names([name for name in case if name not in CASE], COLUMNS)
    columns = [*(names.get(name, name) for name in case), *COLUMNS]
    rows = measured(frame)
    if stage is not None:
        rows = _of_stage(rows, stage)
    if not rows.empty:
        rows = _numeric(rows, axis)
    found = []
    group = keys(rows, [*case, "stage"])
    for _, part in rows.groupby(group, sort=False):
        first = part.iloc[0]
        fitted = fit(part[axis].tolist(), part["samples"].tolist())
        if fitted:
            own = {names.get(name, name): first[name] for name in case}
            found.append({**own, "stage": first["stage"], **fitted})
    table = pd.DataFrame(found, columns=columns, dtype=object)
    counts = dict.fromkeys(("n_values", "n_samples"), "int64")
    text = dict.fromkeys((*CASE, "stage", "fit"), "str")
    return table.astype({**dict.fromkeys(_NUMBERS, "float64"), **counts, **text})


def _of_stage(rows: pd.DataFrame, stage: str) -> pd.DataFrame:
    there = set(rows["stage"])
    if rows.empty or stage in there:
        return rows[rows["stage"] == stage]
    raise UsageError(
        f"The frame has no measured stage {stage!r}. It has: "
        f"{', '.join(sorted(there, key=stage_order))}."
    )


def _numeric(rows: pd.DataFrame, axis: str) -> pd.DataFrame:
    numbers = rows[[_is_positive(value) for value in rows[axis]]]
    if not numbers.empty:
        return numbers
    shown = sorted({repr(value) for value in rows[axis] if value == value})[:5]
    raise UsageError(
        f"The axis {axis!r} holds no positive numbers to scale with, but "
        f"{', '.join(shown) or 'nothing'}. harness.static_costs and "
        "harness.recompile_map compare values of any kind."
    )


def _is_positive(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return False
    return bool(value > 0) and math.isfinite(value)


def fit(values: list[float], samples: list[list[float]]) -> dict[str, Any]:
    """Return the columns of one fit; formulas in :func:`scaling`. {} without a positive time.

    Args:
        values: of the axis, one per row.
        samples: seconds, a list per row.
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
    found: dict[str, Any] = {
        **dict.fromkeys(("exponent", "low", "high", "r2", "deviation"), math.nan),
        "fit": ONE_VALUE,
        "n_values": len(at),
        "n_samples": sum(map(len, points.values())),
        **{"least": at[0], "most": at[-1], "least_s": medians[0], "most_s": medians[-1]},
    }
    if len(at) == 1:
        return found
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
    found |= {
        "exponent": float(line.slope),
        "low": float(line.slope) - half,
        "high": float(line.slope) + half,
        "r2": math.nan if equal else float(line.rvalue) ** 2,
        "deviation": deviation,
    }
    if len(at) == 2:
        return {**found, "fit": TWO_VALUES}
    within = float(sum(np.sum((group - group.mean()) ** 2) for group in groups))
    lack = float(
        sum(len(g) * (g.mean() - on) ** 2 for g, on in zip(groups, fitted_log, strict=True))
    )
    curved = deviation > LEAST_DEVIATION and _p(lack, len(at) - 2, within, n - len(at)) < LEAST_P
    return {**found, "fit": CURVED if curved else POWER_LAW}


def _p(lack: float, lack_df: int, within: float, within_df: int) -> float:
    """Return the p of a lack of fit: F = (lack / its degrees) / (scatter / its degrees).

    Without scatter, as from a single process, whatever is off the line is a lack of fit.
    """
    if within_df < 1 or within <= 0:
        return 0.0
    return float(stats.f.sf((lack / lack_df) / (within / within_df), lack_df, within_df))
