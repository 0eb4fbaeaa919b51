"""The points of a history: one per series and origin, in order of time.

What was chosen or committed decides on the order, and on which environments continue each other;
the clock only where nothing else tells: one that was moved back must not shuffle commits.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import UsageError
from harness.frame.cases import keys
from harness.frame.choose import takes_frame
from harness.frame.columns import NO_MOMENT
from harness.frame.differences import numbers
from harness.frame.frame import ORIGIN, PLACE, axis_columns, with_axes
from harness.frame.pairs import CASE, comparable_rows
from harness.stages.registry import STAGES
from harness.stages.sampling import median_interval_ranks

Codes = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

NEEDED = (
    *ORIGIN, *CASE, "version", "commit_date", "started_at", "jax", "threads", "unit", "status",
    "value", "calibrated", "low", "high", "fingerprint", "environment",
)  # fmt: skip
"""Columns without which there is no history."""

NUMBERS = ["value", "low", "high", "calibrated"]
"""What a point has of them that has any."""

SERIES = (
    "series", "piece", "position", "machine", "workload", "version",
    "target", "transform", "precision", "scenario", "stage",
    "night", "commit", "commit_date", "dirty", *PLACE, "effort", "started_at",
    "status", "unit", "value", "low", "high", "calibrated", "basis",
)  # fmt: skip
"""Columns of :func:`series`; one per axis stands behind `version`."""


@takes_frame
def series(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points that a history is made of, a row per series and origin, in order of time.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        `series`: its number; `piece`: the number, within the series, of what may be compared: it
        changes with the workload's version, with effort, and with the machine behind the name;
        `position`: 0, 1, … in order of time
        (:func:`in_order`). `machine`, `workload`, `version`, a column per axis, `target`,
        `transform`, `precision`, `scenario`, `stage`, `night`, `commit`, `commit_date`, `dirty`,
        `env`, `xla_flags`, `env_vars`, `effort`, `started_at`, `status`, `unit`. Then
        numbers in that unit, NaN where a point has none: `value`, in which steps are looked for,
        `low`, `high`, as in the frame, or of CPU time; `calibrated`, as in the frame. `basis`:
        `cpu` where verdicts of the stage rest on CPU time and all measured points of the piece know
        it, else `wall`; "" of what is not a time.

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
    measured = comparable_rows(frame).reset_index(drop=True)
    for name in ("cpu_samples", "protocol", "method"):
        if name not in measured.columns:
            measured[name] = None
    measured = measured.assign(origin=keys(measured[ORIGIN], ORIGIN))
    measured["rank"], measured["lane"] = _order(measured)
    measured["hardware"] = _hardware(measured)
    for number, apart in (
        ("series", ["machine", *CASE, *axis_columns(frame), "lane"]),
        ("protocol", ["version", "unit", "effort", "hardware", "protocol", "method"]),
    ):
        measured[number] = keys(measured[apart], apart)
    # One point per origin: of two versions of a workload that one origin holds, both.
    measured = measured.sort_values(
        ["series", "rank", "started_at"], kind="stable", na_position="first"
    )
    measured = measured.drop_duplicates(
        ["series", "origin", "protocol"], keep="last", ignore_index=True
    )
    measured["position"] = measured.groupby("series").cumcount()
    starts = measured.groupby(["series", "protocol"])["position"].transform("min")
    measured["piece"] = starts.groupby(measured["series"]).rank("dense").astype(np.int64) - 1
    return _on_clocks(measured)


def _order(measured: pd.DataFrame) -> tuple[Codes, Codes]:
    """Return the rank in time of each row's origin, and the lane of its environment."""
    dates, moments = (
        pd.DatetimeIndex(measured[name]).as_unit("ms").asi8
        for name in ("commit_date", "started_at")
    )
    # Older than any date is no date, so the largest is one wherever a row has one.
    combined = {name: "first" for name in (*ORIGIN, "jax")} | {"date": "max", "moment": "max"}
    origins = measured.assign(date=dates, moment=moments).groupby("origin").agg(combined)
    rank, lane = (np.zeros(len(origins), np.int64) for _ in range(2))
    for _, part in origins.groupby("machine", sort=False):
        order = in_order(part["night"].tolist(), part["date"].tolist(), part["moment"].tolist())
        ids = part.index.to_numpy()[order]
        rank[ids] = np.arange(len(ids))
        rounds: dict[tuple[str, ...], list[str]] = {}
        place = part["env"] + "\n" + part["xla_flags"] + "\n" + part["env_vars"]
        columns = (part["night"], part["commit"], part["dirty"], place)
        texts = (column.iloc[order].tolist() for column in columns)
        for night, commit, dirty, env in zip(*texts, strict=True):
            rounds.setdefault((night,) if night else ("", commit, dirty), []).append(env)
        jax = dict(zip(place, part["jax"], strict=True))
        lane[ids] = place.map(lanes(rounds.values(), jax)).to_numpy()[order]
    return rank[measured["origin"]], lane[measured["origin"]]


def _hardware(measured: pd.DataFrame) -> Codes:
    """Return a number per row that those of alike machines share, among rows of one target."""
    result = np.zeros(len(measured), np.int64)
    for _, rows in measured.groupby(["machine", "target"], sort=False).indices.items():
        codes, texts = pd.factorize(measured["environment"].iloc[rows].fillna(""))
        result[rows] = np.array(numbers(texts), np.int64)[codes]
    return result


def _on_clocks(measured: pd.DataFrame) -> pd.DataFrame:
    """Add `basis` and `weight`; points that are not `ok` have no numbers, and others CPU seconds.

    These where verdicts of the stage rest on them, and all measured points of the piece know them.
    """
    taken = (measured["value"] > 0) | (measured["unit"] != "seconds")
    good = (measured["status"] == "ok") & np.isfinite(measured["value"]) & taken
    measured = measured.assign(**{name: measured[name].where(good) for name in NUMBERS})
    cpu = [list(one) if isinstance(one, list) else [] for one in measured["cpu_samples"]]
    on_cpu = measured["stage"].isin([name for name, one in STAGES.items() if one.clock == "cpu"])
    lacking = good & ~(
        on_cpu & pd.Series([min(one, default=0.0) > 0 for one in cpu], measured.index)
    )
    pieces = [measured["series"], measured["piece"]]
    whole = good & ~lacking.groupby(pieces).transform("any")
    ranks_of = functools.cache(median_interval_ranks)
    of_cpu = []
    for ordered in (sorted(own) for own, is_whole in zip(cpu, whole, strict=True) if is_whole):
        ranks = ranks_of(len(ordered))
        bounds = [ordered[rank] for rank in ranks] if ranks else [np.nan, np.nan]
        of_cpu.append([statistics.median(ordered), *bounds])
    measured.loc[whole, NUMBERS[:3]] = np.reshape(of_cpu, (-1, 3))
    measured["basis"] = np.where(whole, "cpu", np.where(measured["unit"] == "seconds", "wall", ""))
    return measured.assign(weight=weights(measured))


def weights(measured: pd.DataFrame) -> Floats:
    """Return what each point counts in asv's step detection: less, the wider its interval is.

    1 / (width + the piece's median width) of the points' intervals. asv's own pages weigh with
    1 / width; but the median of a night also differs from night to night, and its interval is
    itself uncertain, so no point counts more than twice as much as the usual one. NaN, which stands
    for the median of the others, where there is none: under 6 processes.
    """
    # The scale is left out: within a piece it is one, and only ratios of weights count.
    widths = (measured["high"] - measured["low"]).where(measured["high"] >= measured["low"])
    usual = widths.groupby([measured["series"], measured["piece"]]).transform("median")
    both: Floats = (widths + usual).to_numpy(float, copy=True)
    both[both == 0] = np.nan
    return np.reciprocal(both)


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Return what to sort names by: numbers in them as numbers, so that n9 stands before n10."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(p)) if p.isdecimal() else (1, p) for p in parts)


def in_order(
    nights: Sequence[str], commit_dates: Sequence[int], started: Sequence[int]
) -> list[int]:
    """Return the positions of origins from the oldest to the newest.

    1. Origins with a night stand in the order of the nights' names (:func:`natural`), within a
       night by the commit's date.
    2. Origins without one stand in the order of their commits' dates.
    3. The second are put among the first by the commit's date: before the first night that had
       a newer commit, or the same.
    4. Where all of this is equal, and for the date of what has no commit, the clock at which the
       origin began decides.

    Dates and moments are milliseconds since 1970, or :data:`harness.frame.columns.NO_MOMENT`.
    """
    dates = [
        clock if date == NO_MOMENT else date
        for date, clock in zip(commit_dates, started, strict=True)
    ]
    numbers = range(len(nights))
    named = sorted(
        (n for n in numbers if nights[n]), key=lambda n: (natural(nights[n]), dates[n], started[n])
    )
    others = sorted((n for n in numbers if not nights[n]), key=lambda n: (dates[n], started[n]))
    latest = NO_MOMENT
    keys: dict[int, tuple[int, bool, int]] = {}
    for place, n in enumerate(named):
        latest = max(latest, dates[n])  # a night that went back to an old commit stays in its place
        keys[n] = (latest, True, place)
    for place, n in enumerate(others):
        keys[n] = (dates[n], False, place)
    return sorted(numbers, key=keys.__getitem__)


def lanes(measured: Iterable[Sequence[str]], versions: Mapping[str, str]) -> dict[str, int]:
    """Return the lane of each environment: those of one lane continue each other in one series.

    An environment that is newly made for a newer JAX, or with other flags, takes over from the one
    before it. Those that
    were ever measured side by side, in one night or at one commit, such as the newest release and
    the nightly, never share a lane; of several new ones the older JAX takes the earlier lane.

    `measured` are the environments of each night or commit, in order of time; `versions` those of
    their JAX.
    """
    together: dict[str, set[str]] = {}
    rounds = [list(dict.fromkeys(envs)) for envs in measured]
    for envs in rounds:
        for env in envs:
            together.setdefault(env, set()).update(other for other in envs if other != env)
    members: list[list[str]] = []
    lane: dict[str, int] = {}
    for envs in rounds:
        new = [env for env in envs if env not in lane]
        for env in sorted(new, key=lambda env: (natural(versions.get(env, "")), env)):
            free = (number for number, own in enumerate(members) if together[env].isdisjoint(own))
            number = next(free, len(members))
            if number == len(members):
                members.append([])
            members[number].append(env)
            lane[env] = number
    return lane
