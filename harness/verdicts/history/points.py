"""The points of a history: one per series and origin, in order of time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame.frame import INSTRUMENTS, ORIGIN, axis_columns, ordinary
from harness.frame.machines import numbers
from harness.stages.sampling import median_interval_ranks
from harness.verdicts.history.order import in_order, lanes

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
    found = points(frame)
    head, tail = SERIES[: SERIES.index("target")], SERIES[SERIES.index("target") :]
    return found[[*head, *axis_columns(frame), *tail]]


def points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `frame` that are points, with the columns that :func:`series` adds."""
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise UsageError(
            f"The frame has no column {missing[0]!r}: a history needs all columns of harness.load."
        )
    frame = ordinary(frame)
    keep = (frame["unit"] == "seconds") & ~frame["workload"].isin(INSTRUMENTS)
    found = frame[keep].reset_index(drop=True)
    number, rank, lane = _origins(found)
    codes = pd.DataFrame({name: pd.factorize(found[name])[0] for name in CASE})
    codes["axes"], codes["lane"] = _axes(found), lane
    piece = pd.DataFrame({name: pd.factorize(found[name])[0] for name in ("version", "effort")})
    piece["hardware"] = _hardware(found)
    found = found.assign(
        series=codes.groupby(list(codes), sort=False).ngroup().to_numpy(),
        origin=number,
        rank=rank,
        protocol=piece.groupby(list(piece), sort=False).ngroup().to_numpy(),
    )
    # One point per origin: of two versions of a workload that one origin holds, both.
    found = found.sort_values(["series", "rank", "started_at"], kind="stable", na_position="first")
    found = found.drop_duplicates(["series", "origin", "protocol"], keep="last", ignore_index=True)
    found["position"] = found.groupby("series").cumcount()
    found["piece"] = _pieces(found)
    return _judged(found)


def _origins(found: pd.DataFrame) -> tuple[Codes, Codes, Codes]:
    """Return the number, the rank in time, and the environment's lane of each row's origin."""
    codes = pd.DataFrame({name: pd.factorize(found[name])[0] for name in ORIGIN})
    number: Codes = codes.groupby(ORIGIN, sort=False).ngroup().to_numpy().astype(np.int64)
    about = found[[*ORIGIN, "jax"]].assign(
        commit_date=_milliseconds(found["commit_date"]),
        started_at=_milliseconds(found["started_at"]),
        number=number,
    )
    # Older than any date is no date, so the largest is one wherever a row has one.
    first = about.groupby("number").agg(
        {name: "first" for name in (*ORIGIN, "jax")} | {"commit_date": "max", "started_at": "max"}
    )
    rank = np.zeros(len(first), np.int64)
    lane = np.zeros(len(first), np.int64)
    for _, part in first.groupby("machine", sort=False):
        order = in_order(
            part["night"].tolist(), part["commit_date"].tolist(), part["started_at"].tolist()
        )
        ids = part.index.to_numpy()[order]
        rank[ids] = np.arange(len(ids))
        rounds: dict[tuple[str, ...], list[str]] = {}
        texts = (part[name].iloc[order].tolist() for name in ("night", "commit", "dirty", "env"))
        for night, commit, dirty, env in zip(*texts, strict=True):
            rounds.setdefault((night,) if night else ("", commit, dirty), []).append(env)
        jax = dict(zip(part["env"], part["jax"], strict=True))
        lane[ids] = part["env"].map(lanes(rounds.values(), jax)).to_numpy()[order]
    return number, rank[number], lane[number]


def _hardware(found: pd.DataFrame) -> Codes:
    """Return a number per row that those of alike machines share, among rows of one target."""
    result = np.zeros(len(found), np.int64)
    for _, rows in found.groupby(["machine", "target"], sort=False).indices.items():
        codes, texts = pd.factorize(found["environment"].iloc[rows].fillna(""))
        result[rows] = np.array(numbers(texts), np.int64)[codes]
    return result


def _milliseconds(moments: pd.Series[Any]) -> Codes:
    return pd.DatetimeIndex(moments).as_unit("ms").asi8


def _axes(found: pd.DataFrame) -> Codes:
    """Return a number per row that is equal where all axes are, in type and in value."""
    codes = np.zeros(len(found), np.int64)
    for name in axis_columns(found):
        column = found[name].to_numpy(object)
        has = np.flatnonzero(~pd.isna(column))
        if not len(has):
            continue
        own = np.zeros(len(found), np.int64)
        # The text: True and 1 and 1.0 are equal in Python, and lists have no hash.
        own[has] = pd.factorize(np.array([repr(value) for value in column[has]], object))[0] + 1
        codes = pd.factorize(codes * (own.max() + 1) + own)[0]
    return codes


def _pieces(found: pd.DataFrame) -> pd.Series[Any]:
    """Return the number of each point's piece: 0, 1, … as they come up in the series."""
    starts = found.groupby(["series", "protocol"])["position"].transform("min")
    return starts.groupby(found["series"]).rank("dense").astype(np.int64) - 1


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
