"""Change points of a history: a row per step, with what else changed there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.frame.choose import takes_frame
from harness.frame.differences import (
    MOST_VERSION,
    difference,
    environment_difference,
    facts_difference,
    hardware,
)
from harness.frame.frame import PLACE, axis_columns, with_axes
from harness.stages.registry import STAGES, effect, stage_of
from harness.verdicts.counts import Proof, proof
from harness.verdicts.history.points import points
from harness.verdicts.history.steps import CONFIRMED, Level, levels, state
from harness.verdicts.proof import other_inputs
from harness.verdicts.verdict import COUNTS, FASTER, INCOMPARABLE, LESS, MORE, SLOWER

ENVIRONMENT, PROGRAM = "environment", "program"

REFERENCE = "reference"
"""Evidence: the time of the reference program changed as much."""

COLUMNS = (
    "machine", "workload", "version", "target", "transform", "precision", "scenario", "stage",
    "unit", "change", "state", "night_before", "night_after", "commit_before", "commit_after",
    "before_s", "after_s", "ratio", "basis", "effect", "n_before", "n_after",
    "same_program", "environment", "facts", "inside", "evidence", "calls_before",
    "calls_after", "cut", *PLACE, "started_at",
    "series", "position",
)  # fmt: skip
"""Columns of :func:`history`; one per axis stands behind `version`."""

_NUMBERS = ("before_s", "after_s", "ratio", "effect", "calls_before", "calls_after")
_COUNTS = ("n_before", "n_after", "series", "position")
_OTHERS = (*_NUMBERS, *_COUNTS, "same_program", "started_at")


@takes_frame
def history(frame: pd.DataFrame, *, cuts: bool = False) -> pd.DataFrame:
    """Return the change points of every case and stage over commits and nights, newest first.

    Args:
        frame: from :func:`harness.load`.
        cuts: list as well, as `incomparable`, where a series was cut because the workload's version
            or the effort changed, or another machine stands behind the name.

    Returns:
        `machine`, `workload`, `version`, a column per axis, `target`, `transform`, `precision`,
        `scenario`, `stage`; then

        - `change`: `slower`, `faster`; `environment`: a stage that only runs the program changed,
          the program and its inputs did not, or the reference program's time changed as much;
          `program`: it changed, and no change of the time of compiling it shows; `incomparable`.
        - `state`: `confirmed`, by counts or by a second point after it, or `new`: one point so far
          shows it, and the next must confirm it.
        - `night_before`, `commit_before`: of the last point before the step; `night_after`,
          `commit_after`: of the first point after it. The cause lies between the two.
        - `unit`: "seconds", or the own unit of a benchmark that is no time, of which `change` is
          `more` or `less`. `before_s`, `after_s`: medians of the levels in it, as measured.
          `basis`: of the `wall` or `cpu` clock.
        - `ratio`: after_s / before_s, above 1 is slower; `effect`: the smallest that counts in this
          stage, 0.05 is 5 %; `n_before`, `n_after`: points that the levels rest on.
        - `same_program`: whether the fingerprints of the two points are equal; None where one is
          not known.
        - `environment`, `facts`: what differs between the two points
          (:mod:`harness.frame.differences`). `inside`: "", unless
          :func:`harness.verdicts.inside.of_steps` fills it.
        - `evidence`: `counts` where Python's calls prove it, `reference` where the reference
          program's time changed as much, or "". `calls_before`, `calls_after`: those calls, where
          they changed. `cut`: of `incomparable`, what changed.
        - `env`, `xla_flags`, `env_vars`, `started_at`: of the first point after it. `series`,
          `position`: that point's, in :func:`harness.verdicts.history.series`.

        A step in counts needs two points, one in times three. How they are found: docs/method.md.

    Raises:
        UsageError: a column is missing.
    """
    table = points(frame)
    axes = axis_columns(frame)
    steps = [*_steps(table)]
    programs = _programs(table, {step.after for step in steps})
    changes = [*steps, *programs, *(_cuts(table) if cuts else ())]
    changed = {at for change in changes for at in (change.before, change.after)}
    rows = dict(zip(changed, table.loc[list(changed)].to_dict("records"), strict=True))
    by = {at: (row["machine"], -row["rank"], row["series"]) for at, row in rows.items()}
    changes.sort(key=lambda change: by[change.after])
    rows_of_changes = [
        _row(change, rows[change.before], rows[change.after], axes) for change in changes
    ]
    result = pd.DataFrame(rows_of_changes, columns=with_axes(COLUMNS, axes), dtype=object)
    types: dict[str, Any] = {name: "str" for name in COLUMNS if name not in _OTHERS}
    types |= dict.fromkeys(_NUMBERS, float) | dict.fromkeys(_COUNTS, np.int64)
    result = result.astype(types)
    result["started_at"] = pd.to_datetime(result["started_at"], utc=True)
    return result


class _Change(NamedTuple):
    """A step, or a cut, between two points of a series."""

    before: int
    after: int
    """The rows of the last point before it and of the first point after it."""
    before_s: float
    after_s: float
    n_before: int
    n_after: int
    state: str = CONFIRMED
    change: str = ""
    """What is known of it by something else than the times; "" for what these say."""
    evidence: str = ""
    calls: tuple[float, float] = (math.nan, math.nan)


def _steps(table: pd.DataFrame) -> Iterator[_Change]:
    """Yield the steps within each piece of each series.

    First those that counts prove; then, in the stretches between them, those of the times.
    """
    columns = (table[name].to_numpy(float) for name in ("value", "weight", "calibrated"))
    values, weights, relative = columns
    stages = table["stage"].to_list()
    proven = _proven(table)
    rows: Any
    for rows in table.groupby(["series", "piece"]).indices.values():  # in the order of time
        least = effect(stages[rows[0]])
        starts = [n for n, row in enumerate(rows.tolist()) if row in proven]
        parts = []
        for start, stop in itertools.pairwise([0, *starts, len(rows)]):
            own = rows[start:stop]
            there = levels(values[own], weights[own], least)
            parts += [Level(own[one.positions], one.value, one.scatter) for one in there]
        for number, (before, after) in enumerate(itertools.pairwise(parts)):
            ends = int(before.positions[-1]), int(after.positions[0])
            by = next((one for row, one in proven.items() if ends[0] < row <= ends[1]), None)
            high, low = (before, after) if by and by.rose else (after, before)
            change, evidence, calls = "", "", (math.nan, math.nan)
            is_proven = bool(by) and high.value < low.value * (1 + least)
            if by:
                calls = by.before, by.after
                evidence = COUNTS if is_proven else ""
                least_value, most = sorted((before.value, after.value))
                shows = most >= least_value * (1 + least)
                change = by.kind if is_proven and not shows else ""
            else:
                one, other = (np.median(relative[level.positions]) for level in (before, after))
                if abs(math.log(other / one)) < math.log1p(least):  # never where one is NaN
                    change, evidence = ENVIRONMENT, REFERENCE
            yield _Change(
                *ends,
                before.value,
                after.value,
                len(before.positions),
                len(after.positions),
                CONFIRMED if is_proven else state(after, is_last=number + 2 == len(parts)),
                change,
                evidence,
                calls,
            )


def _proven(table: pd.DataFrame) -> dict[int, Proof]:
    """Return what counts prove of a point and the one before it, by the row of the second."""
    proofs = {}
    for stage in STAGES.values():
        if stage.counted and stage.counted in table.columns:
            for before, after in _changed(table, stage.name, stage.counted):
                by = proof(_row_of(table, before), _row_of(table, after))
                if by:
                    proofs[after] = by
    return proofs


def _row_of(table: pd.DataFrame, row: int) -> dict[str, Any]:
    (only,) = table.loc[[row]].to_dict("records")
    return {str(name): value for name, value in only.items()}


def _changed(table: pd.DataFrame, stage: str, column: str) -> Iterator[tuple[int, int]]:
    """Yield the rows of neighbours in a piece of which both know a value, and not the same."""
    measured = table[(table["stage"] == stage) & table["value"].notna() & table[column].notna()]
    measured = measured[measured[column] != ""]
    for _, part in measured.groupby(["series", "piece"]):
        for before, after in itertools.pairwise(zip(part.index, part[column], strict=True)):
            if before[1] != after[1]:
                yield before[0], after[0]


def _programs(table: pd.DataFrame, stepped: Collection[int]) -> Iterator[_Change]:
    """Yield where a program changed under one JAX and the time of compiling it made no step.

    Where the two points alone show a change that counts, it is one of the time, as in `harness
    compare`. `stepped` are the rows after steps, which say so themselves.
    """
    usual = _usual_moves(table)
    for before, after in _changed(table, "compile", "fingerprint"):
        one, other = _row_of(table, before), _row_of(table, after)
        same = all(one[name] == other[name] for name in ("jax", "jaxlib"))
        if after not in stepped and same and facts_difference(one, other):
            levels = one["value"], other["value"]
            change = "" if _shows(one, other, usual.get((one["series"], one["piece"]))) else PROGRAM
            yield _Change(before, after, *levels, 1, 1, change=change)


def _shows(one: Mapping[str, Any], other: Mapping[str, Any], usual: float | None) -> bool:
    """Tell whether two points of unlike programs show a change of time without any others.

    It counts, their intervals do not meet, and no two neighbours of one program are as far apart:
    `usual` is the most of those, in logarithms.
    """
    moved = abs(math.log(other["value"] / one["value"]))
    apart = max(one["low"], other["low"]) > min(one["high"], other["high"])
    return apart and moved >= math.log1p(effect(other["stage"])) and moved > (usual or 0.0)


def _usual_moves(table: pd.DataFrame) -> dict[Any, float]:
    """Return how far neighbours of one program are apart at the most, by series and piece."""
    compiles = table[(table["stage"] == "compile") & (table["value"] > 0)]
    pieces = [compiles["series"], compiles["piece"]]
    moves = np.log(compiles["value"]).groupby(pieces).diff().abs()
    same = compiles["fingerprint"] == compiles["fingerprint"].groupby(pieces).shift()
    most: dict[Any, float] = moves[same].groupby([one[same] for one in pieces]).max().to_dict()
    return most


def _cuts(table: pd.DataFrame) -> Iterator[_Change]:
    """Yield where one piece of a series ends and the next begins."""
    good = table[table["value"].notna()]
    several = good.groupby("series")["piece"].transform("nunique") > 1
    for _, part in good[several].groupby("series", sort=False):
        pieces = [piece for _, piece in part.groupby("piece")["value"]]
        for before, after in itertools.pairwise(pieces):
            start = after.index[0]
            earlier = before.index[before.index < start]
            if len(earlier):
                medians = float(before.median()), float(after.median())
                yield _Change(int(earlier[-1]), int(start), *medians, len(before), len(after))


def _row(
    step: _Change, one: Mapping[Any, Any], other: Mapping[Any, Any], axes: Sequence[str]
) -> dict[str, Any]:
    same = None
    if one["fingerprint"] and other["fingerprint"]:
        same = bool(one["fingerprint"] == other["fingerprint"])
    rose, fell = (SLOWER, FASTER) if other["unit"] == "seconds" else (MORE, LESS)
    change = step.change or (rose if step.after_s > step.before_s else fell)
    if same and stage_of(other["stage"]).runs_program and not other_inputs(one, other):
        change = ENVIRONMENT
    is_cut = one["piece"] != other["piece"]
    cut_by = [
        f"{k} {one[k][:MOST_VERSION]} → {other[k][:MOST_VERSION]}"
        for k in ("version", "unit", "effort")
        if one[k] != other[k]
    ]
    machine = difference(*(hardware(row["environment"]) for row in (one, other)))
    cut_by += [f"another machine of this name: {machine}"] if machine else []
    names = (name for name in (*COLUMNS, *axes) if name in other)
    return {name: other[name] for name in names} | {
        "change": INCOMPARABLE if is_cut else change,
        "state": step.state,
        "before_s": step.before_s,
        "after_s": step.after_s,
        "ratio": math.nan
        if is_cut or min(step.before_s, step.after_s) <= 0
        else step.after_s / step.before_s,
        "effect": effect(other["stage"]),
        "n_before": step.n_before,
        "n_after": step.n_after,
        "night_before": one["night"],
        "night_after": other["night"],
        "commit_before": one["commit"],
        "commit_after": other["commit"],
        "same_program": same,
        "environment": environment_difference(one["environment"], other["environment"]),
        "facts": facts_difference(one, other),
        "inside": "",
        "evidence": "" if is_cut else step.evidence,
        "calls_before": step.calls[0],
        "calls_after": step.calls[1],
        "cut": ", ".join(cut_by) if is_cut else "",
    }
