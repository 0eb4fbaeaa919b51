"""The points of a history: one per series and origin, in order of time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame.cases import keys
from harness.frame.differences import numbers
from harness.frame.frame import ORIGIN, axis_columns, with_axes
from harness.stages.sampling import median_interval_ranks
from harness.verdicts.history.order import in_order, lanes
from harness.verdicts.pairs import comparable_rows

Codes = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

CASE = ["machine", "workload", "target", "transform", "precision", "scenario", "stage"]
"""Columns that, with the axes, tell one series from another."""

NEEDED = (
    *(*ORIGIN, *CASE, "version", "commit_date", "started_at", "jax", "threads", "unit", "status"),
    *("value", "calibrated", "low", "high", "fingerprint", "environment", "calibrated_samples"),
)
"""Columns without which there is no history."""

SERIES = (
    *("series", "piece", "position", "machine", "workload", "version"),
    *("target", "transform", "precision", "scenario", "stage"),
    *("night", "commit", "commit_date", "dirty", "env", "effort", "started_at"),
    *("status", "value", "low", "high", "calibrated", "basis", "judged"),
)
"""Columns of :func:`series`; one per axis stands behind `version`."""


def series(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points that a history is made of, a row per series and origin, in order of time.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        `series`: its number; `piece`: the number, within the series, of what may be compared: it
        changes with the workload's version, with effort, and with the machine behind the name;
        `position`: 0, 1, … in order of time
        (:func:`harness.verdicts.history.order.in_order`). `machine`, `workload`, `version`, a
        column per axis, `target`, `transform`, `precision`, `scenario`, `stage`, `night`,
        `commit`, `commit_date`, `dirty`, `env`, `effort`, `started_at`, `status`. Then seconds,
        NaN where a point has none: `value`, `low`, `high`, as in the frame; `calibrated`, as in
        the frame. `basis`: `calibrated` where all measured points of the piece have that, else
        `raw`. `judged`: seconds in which steps are looked for: `value`, or `calibrated` times the
        piece's median of value / calibrated.

    Raises:
        UsageError: a column is missing.
    """
    return points(frame)[with_axes(SERIES, axis_columns(frame))]


def points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `frame` that are points, with the columns that :func:`series` adds."""
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise UsageError(
            f"The frame has no column {missing[0]!r}: a history needs all columns of harness.load."
        )
    found = comparable_rows(frame).reset_index(drop=True)
    found = found.assign(origin=_number(found, ORIGIN))
    found["rank"], found["lane"] = _order(found)
    found["hardware"] = _hardware(found)
    found["series"] = _number(found, [*CASE, *axis_columns(frame), "lane"])
    found["protocol"] = _number(found, ["version", "effort", "hardware"])
    # One point per origin: of two versions of a workload that one origin holds, both.
    found = found.sort_values(["series", "rank", "started_at"], kind="stable", na_position="first")
    found = found.drop_duplicates(["series", "origin", "protocol"], keep="last", ignore_index=True)
    found["position"] = found.groupby("series").cumcount()
    starts = found.groupby(["series", "protocol"])["position"].transform("min")
    found["piece"] = starts.groupby(found["series"]).rank("dense").astype(np.int64) - 1
    return _judged(found)


def _number(found: pd.DataFrame, columns: list[str]) -> pd.Series[int]:
    """Return a number per row, equal for rows that are equal in `columns`, in type and value."""
    return keys(found[columns], columns)


def _order(found: pd.DataFrame) -> tuple[Codes, Codes]:
    """Return the rank in time of each row's origin, and the lane of its environment."""
    dates, moments = (
        pd.DatetimeIndex(found[name]).as_unit("ms").asi8 for name in ("commit_date", "started_at")
    )
    # Older than any date is no date, so the largest is one wherever a row has one.
    told = {name: "first" for name in (*ORIGIN, "jax")} | {"date": "max", "moment": "max"}
    origins = found.assign(date=dates, moment=moments).groupby("origin").agg(told)
    rank, lane = (np.zeros(len(origins), np.int64) for _ in range(2))
    for _, part in origins.groupby("machine", sort=False):
        order = in_order(part["night"].tolist(), part["date"].tolist(), part["moment"].tolist())
        ids = part.index.to_numpy()[order]
        rank[ids] = np.arange(len(ids))
        rounds: dict[tuple[str, ...], list[str]] = {}
        texts = (part[name].iloc[order].tolist() for name in ("night", "commit", "dirty", "env"))
        for night, commit, dirty, env in zip(*texts, strict=True):
            rounds.setdefault((night,) if night else ("", commit, dirty), []).append(env)
        jax = dict(zip(part["env"], part["jax"], strict=True))
        lane[ids] = part["env"].map(lanes(rounds.values(), jax)).to_numpy()[order]
    return rank[found["origin"]], lane[found["origin"]]


def _hardware(found: pd.DataFrame) -> Codes:
    """Return a number per row that those of alike machines share, among rows of one target."""
    result = np.zeros(len(found), np.int64)
    for _, rows in found.groupby(["machine", "target"], sort=False).indices.items():
        codes, texts = pd.factorize(found["environment"].iloc[rows].fillna(""))
        result[rows] = np.array(numbers(texts), np.int64)[codes]
    return result


def _judged(found: pd.DataFrame) -> pd.DataFrame:
    """Add `basis`, `judged` and `weight`, and leave no numbers in points that are not `ok`."""
    good = (found["status"] == "ok") & np.isfinite(found["value"]) & (found["value"] > 0)
    numbers = ["value", "low", "high", "calibrated"]
    found = found.assign(**{name: found[name].where(good) for name in numbers})
    lacking = good & ~(np.isfinite(found["calibrated"]) & (found["calibrated"] > 0))
    keys = [found["series"], found["piece"]]
    calibrated = ~lacking.groupby(keys).transform("any")
    speed = (found["value"] / found["calibrated"]).groupby(keys).transform("median")
    found = found.assign(
        basis=np.where(calibrated, "calibrated", "raw"),
        judged=np.where(calibrated, found["calibrated"] * speed, found["value"]),
    )
    return found.assign(weight=weights(found))


def weights(found: pd.DataFrame) -> Floats:
    """Return what each point counts in asv's step detection: less, the wider its interval is.

    1 / (width + the piece's median width) of the points' intervals. asv's own pages weigh with
    1 / width; but the median of a night also differs from night to night, and its interval is
    itself uncertain, so no point counts more than twice as much as the usual one. The interval is
    that of what is judged, so where that is calibrated, of the calibrated samples. NaN, which
    stands for the median of the others, where there is none: under 6 processes.
    """
    widths = (found["high"] - found["low"]).to_numpy(float, copy=True)
    samples = found["calibrated_samples"].to_list()
    ranks_of = functools.cache(median_interval_ranks)
    for row in np.flatnonzero(found["basis"] == "calibrated").tolist():
        ordered = [] if samples[row] is None else sorted(samples[row])
        ranks = ranks_of(len(ordered))
        widths[row] = ordered[ranks[1]] - ordered[ranks[0]] if ranks else np.nan
    # The scale is left out: within a piece it is one, and only ratios of weights count.
    widths[~(widths >= 0)] = np.nan
    usual = pd.Series(widths).groupby([found["series"], found["piece"]]).transform("median")
    both: Floats = widths + usual.to_numpy(float)
    both[both == 0] = np.nan
    return np.reciprocal(both)
