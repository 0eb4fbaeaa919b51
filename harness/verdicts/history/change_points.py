"""Change points of a history: a row per step, with what else changed there."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.frame.environment_difference import environment_difference
from harness.frame.facts_difference import facts_difference
from harness.frame.frame import axis_columns
from harness.frame.machines import difference, hardware
from harness.stages.registry import effect as stage_effect
from harness.verdicts.history.points import points
from harness.verdicts.history.steps import CONFIRMED, Level, levels, state
from harness.verdicts.history.weights import weights
from harness.verdicts.rules import runs_the_program

if TYPE_CHECKING:
    from collections.abc import Mapping

SLOWER, FASTER, ENVIRONMENT, INCOMPARABLE = "slower", "faster", "environment", "incomparable"

COLUMNS = (
    *("machine", "workload", "version", "target", "transform", "precision", "scenario", "stage"),
    *("change", "state", "night_before", "night_after", "commit_before", "commit_after"),
    *("before_s", "after_s", "ratio", "basis", "effect", "n_before", "n_after"),
    *("same_program", "environment", "facts", "reason", "env", "started_at"),
    *("series", "position"),
)
"""Columns of :func:`history`; one per axis stands behind `version`."""

_NUMBERS = ("before_s", "after_s", "ratio", "effect")
_COUNTS = ("n_before", "n_after", "series", "position")
_TAKEN = ("scenario", "stage", "basis", "env", "started_at", "series", "position")
_OTHERS = (*_NUMBERS, *_COUNTS, "same_program", "started_at")


def history(frame: pd.DataFrame, *, cuts: bool = False) -> pd.DataFrame:
    """Return the change points of every case and stage over commits and nights, newest first.

    Args:
        frame: from :func:`harness.load`.
        cuts: list as well, as `incomparable`, where a series was cut because the workload's version
            or the effort changed, or another machine stands behind the name.

    Returns:
        `machine`, `workload`, `version`, a column per axis, `target`, `transform`, `precision`,
        `scenario`, `stage`; then

        - `change`: `slower`, `faster`; `environment`: execute, dispatch or load changed, the
          program did not; `incomparable`.
        - `state`: `confirmed`, or `new`: one point so far shows it, and the next must confirm it.
        - `night_before`, `commit_before`: of the last point before the step; `night_after`,
          `commit_after`: of the first point after it. The cause lies between the two.
        - `before_s`, `after_s`: medians of the levels, seconds. `basis`: `calibrated` (seconds at
          the speed that the machine usually has in this series) or `raw`.
        - `ratio`: after_s / before_s, above 1 is slower; `effect`: the smallest that counts in this
          stage, 0.05 is 5 %; `n_before`, `n_after`: points that the levels rest on.
        - `same_program`: whether the fingerprints of the two points are equal; None where one is
          not known.
        - `environment`, `facts`: what differs between the two points
          (:mod:`harness.frame.environment_difference`,
          :mod:`harness.frame.facts_difference`).
        - `reason`: of `incomparable`, what changed. `env`, `started_at`: of the first point after
          it. `series`, `position`: that point's, in :func:`harness.verdicts.history.series`.

        A series needs three points. How steps are found: docs/method.md.

    Raises:
        UsageError: a column is missing.
    """
    found = points(frame)
    axes = axis_columns(frame)
    steps = [_step(found, axes, *step) for step in _steps(found)]
    if cuts:
        steps += [_cut(found, axes, *cut) for cut in _cuts(found)]
    steps.sort(key=lambda row: row["place"])
    head, tail = COLUMNS[: COLUMNS.index("target")], COLUMNS[COLUMNS.index("target") :]
    result = pd.DataFrame(steps, columns=[*head, *axes, *tail], dtype=object)
    types: dict[str, Any] = {name: "str" for name in COLUMNS if name not in _OTHERS}
    types |= dict.fromkeys(_NUMBERS, float) | dict.fromkeys(_COUNTS, np.int64)
    result = result.astype(types)
    result["started_at"] = pd.to_datetime(result["started_at"], utc=True)
    return result


def _steps(found: pd.DataFrame) -> Iterator[tuple[int, int, Level, Level, float, str]]:
    """Yield the rows of the points around each step, the levels, the effect and the state."""
    judged = found["judged"].to_numpy(float)
    weight = weights(found)
    stages = found["stage"].to_numpy()
    order = found.sort_values(["series", "piece", "position"], kind="stable").index.to_numpy()
    keys = found[["series", "piece"]].to_numpy()[order]
    borders = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    for rows in np.split(order, borders) if len(order) else ():
        effect = stage_effect(stages[rows[0]])
        own = levels(judged[rows], weight[rows], effect)
        for number, (before, after) in enumerate(itertools.pairwise(own)):
            last = state(after, number + 2 == len(own))
            around = rows[before.positions[-1]], rows[after.positions[0]]
            yield int(around[0]), int(around[1]), before, after, effect, last


def _cuts(found: pd.DataFrame) -> Iterator[tuple[int, int, float, float, int, int]]:
    """Yield the rows around each cut, and the median and number of points of the two pieces."""
    good = found[found["judged"].notna()]
    several = good.groupby("series")["piece"].transform("nunique") > 1
    for _, part in good[several].groupby("series", sort=False):
        pieces = list(part.groupby("piece")["judged"])
        for (_, before), (_, after) in itertools.pairwise(pieces):
            start = after.index[0]
            earlier = before.index[before.index < start]  # rows stand in the order of time
            if len(earlier):
                medians = float(before.median()), float(after.median())
                yield int(earlier[-1]), int(start), *medians, len(before), len(after)


def _step(
    found: pd.DataFrame,
    axes: list[str],
    before: int,
    after: int,
    old: Level,
    new: Level,
    effect: float,
    confidence: str,
) -> dict[str, Any]:
    one, other = found.iloc[before].to_dict(), found.iloc[after].to_dict()
    change = SLOWER if new.value > old.value else FASTER
    same = _same_program(one, other)
    if same and runs_the_program(other["stage"]):
        change = ENVIRONMENT
    return _around(one, other, axes) | {
        "change": change,
        "state": confidence,
        "before_s": old.value,
        "after_s": new.value,
        "ratio": new.value / old.value,
        "effect": effect,
        "n_before": len(old.positions),
        "n_after": len(new.positions),
        "reason": "",
    }


def _cut(
    found: pd.DataFrame,
    axes: list[str],
    before: int,
    after: int,
    old_s: float,
    new_s: float,
    n_before: int,
    n_after: int,
) -> dict[str, Any]:
    one, other = found.iloc[before].to_dict(), found.iloc[after].to_dict()
    changed = [
        f"{name} {one[name]} → {other[name]}"
        for name in ("version", "effort")
        if one[name] != other[name]
    ]
    machine = difference(*(hardware(row["environment"]) for row in (one, other)))
    changed += [f"another machine of this name: {machine}"] if machine else []
    return _around(one, other, axes) | {
        "change": INCOMPARABLE,
        "state": CONFIRMED,
        "before_s": old_s,
        "after_s": new_s,
        "ratio": float("nan"),
        "effect": stage_effect(other["stage"]),
        "n_before": n_before,
        "n_after": n_after,
        "reason": ", ".join(changed),
    }


def _around(
    one: Mapping[Hashable, Any], other: Mapping[Hashable, Any], axes: list[str]
) -> dict[str, Any]:
    """Return what a row says of the points before and after a step."""
    names = ("machine", "workload", "version", *axes, "target", "transform", "precision")
    return {name: other[name] for name in (*names, *_TAKEN)} | {
        "night_before": one["night"],
        "night_after": other["night"],
        "commit_before": one["commit"],
        "commit_after": other["commit"],
        "same_program": _same_program(one, other),
        "environment": environment_difference(one["environment"], other["environment"]),
        "facts": facts_difference(*({str(k): v for k, v in row.items()} for row in (one, other))),
        "place": (other["machine"], -other["rank"], other["series"]),
    }


def _same_program(one: Mapping[Hashable, Any], other: Mapping[Hashable, Any]) -> bool | None:
    if not one["fingerprint"] or not other["fingerprint"]:
        return None
    return bool(one["fingerprint"] == other["fingerprint"])
