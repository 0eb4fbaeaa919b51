"""What building the programs of a sweep took, which cases share one, and what forces a new one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from harness.errors import HarnessWarning, UsageError
from harness.frame.cases import (
    CASE,
    by_stage,
    case_columns,
    check,
    check_axis,
    free_names,
    keys,
    measured,
)
from harness.frame.frame import axis_column, axis_columns
from harness.frame.tables import case_texts
from harness.frame.typed import takes_frame
from harness.stages.registry import names as stage_names

STEPS = stage_names("build", "compile", where=lambda stage: stage.stacked)
"""The stages that build a program."""

SECONDS = (*(f"{stage}_s" for stage in STEPS), "build_s")
"""Columns of seconds; `build_s` is the sum of the others."""

_ABOUT = ("fingerprint", "static", "environment")

_SWEEP = [name for name in CASE if name not in ("transform", "precision")]
"""What is equal in all cases of one sweep: between those, programs are compared."""

_CASES = ("case", "new_program", "same_program_as", "reason", "fingerprint")
_AXES = ("axis", "new_program", "n_values", "n_cases", "n_programs", "build_s", "saved_s")

_STATIC = ("static_axis", "static_value", "same_program", "n_values", "per_value_s")


@takes_frame
def recompile_map(frame: pd.DataFrame, by: Literal["case", "axis"] = "case") -> pd.DataFrame:
    """Return which cases of a workload XLA built the same program for, and which needed a new one.

    Nothing is measured: programs are equal where their fingerprints are. Whether JAX builds an
    equal program again depends on how it is called, which `harness profile` sees. Cases
    without a fingerprint are left out.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.
        by: `"case"`, or `"axis"` for a summary.

    Returns:
        By case, in the order of the frame: :data:`harness.frame.cases.CASE`, a column per axis,
        `case` (as text), `new_program`, `same_program_as` (an earlier case of the workload,
        else empty), `reason` (what is new against the earlier case most alike: `dtype: float32 →
        bfloat16`; `first call`; empty where nothing is new), `trace_s`, `lower_s`, `compile_s`,
        their sum `build_s` (medians over processes), `fingerprint`.

        By axis, transform and precision included, those with two values or more: the columns of
        origin, `jax`, `workload`, `version`, `target`, `scenario`, then

        - `axis`, and `new_program`: whether changing it alone makes one: `always`, `sometimes`,
          `never`.
        - `n_values` of the axis; `n_cases` that differ from another one in this axis only;
          `n_programs` that they need, counted anew for each combination of the other axes.
        - `build_s`: trace, lower and compile of all those cases.
        - `saved_s`: what of it one program for all values would save, the costliest one kept: by
          padding sizes to one bucket, or passing a static argument as an array. What it would cost
          in each call, this does not say.

    Raises:
        UsageError: this is no frame of results, or `by` is something else.
    """
    if by not in ("case", "axis"):
        raise UsageError(f"by={by!r} is unknown, expected 'case' or 'axis'.")
    check(frame, "harness.recompile_map", ["fingerprint"])
    table, axes = _builds(frame, _CASES)
    table = table[table["fingerprint"] != ""]
    if by == "axis":
        rows = [row for part in _alike(table, _SWEEP) for row in _by_axis(part, axes)]
        found = pd.DataFrame(rows, columns=[*_SWEEP, *_AXES], dtype=object)
        types = {**dict.fromkeys([*_SWEEP, "axis", "new_program"], "str")}
        types |= dict.fromkeys(("n_values", "n_cases", "n_programs"), "int64")
        return found.astype({**types, "build_s": "float64", "saved_s": "float64"})
    said = [one for part in _alike(table, _SWEEP) for one in _by_case(part, axes)]
    about = pd.DataFrame(said, columns=["at", *_CASES[:4]]).set_index("at").reindex(table.index)
    found = table.join(about)[[*CASE, *axes, *_CASES[:4], *SECONDS, "fingerprint"]]
    text = dict.fromkeys(("case", "same_program_as", "reason"), "str")
    return found.astype({**text, "new_program": bool}).reset_index(drop=True)


def _by_case(part: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield index, text, newness, twin and reason of each case of one sweep."""
    told = ["transform", "precision", *axes]
    first: dict[str, str] = {}
    before: list[dict[str, Any]] = []
    for (at, row), case in zip(part.iterrows(), case_texts(part, axes), strict=True):
        label = case or "the only case"
        twin = first.get(row["fingerprint"], "")
        first.setdefault(row["fingerprint"], label)
        now = {name: row[name] for name in told}
        # By repr, as NaN stands for an axis that both lack.
        differences = [
            [f"{n}: {old[n]} → {now[n]}" for n in told if repr(old[n]) != repr(now[n])]
            for old in before
        ]
        before.append(now)
        nearest: list[str] = min(differences, key=len) if differences else ["first call"]
        yield at, label, not twin, twin, "" if twin else "; ".join(nearest)


def _by_axis(part: pd.DataFrame, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each axis of one sweep that has two values or more."""
    told = ["transform", "precision", *axes]
    varied = [name for name in told if part[name].map(repr).nunique() > 1]
    for axis in varied:
        others = [name for name in varied if name != axis]
        sets = [found for found in _alike(part, others) if len(found) > 1]
        if not sets:
            continue
        programs = [found["fingerprint"].nunique() for found in sets]
        cases = sum(map(len, sets))
        always, never = sum(programs) == cases, sum(programs) == len(sets)
        build_s = float(sum(found["build_s"].sum() for found in sets))
        kept_s = float(sum(found["build_s"].max() for found in sets))
        yield {
            **{name: part[name].iloc[0] for name in _SWEEP},
            "axis": axis,
            "new_program": "always" if always else "never" if never else "sometimes",
            "n_values": len({repr(value) for found in sets for value in found[axis]}),
            "n_cases": cases,
            "n_programs": sum(programs),
            "build_s": build_s,
            "saved_s": build_s - kept_s,
        }


@takes_frame
def static_costs(
    frame: pd.DataFrame, axes: Sequence[str] | Mapping[str, Sequence[str]] | None = None
) -> pd.DataFrame:
    """Return what each value of a static axis costs to build, a row per case and static axis.

    A static argument is part of the program: JAX traces, lowers and compiles anew for each of its
    values, whatever XLA makes of it.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.
        axes: which axes are static: their names, or names by workload. None takes those that the
            records name, from the workload's `static`.

    Returns:
        :data:`harness.frame.cases.CASE`, a column per axis, then

        - `static_axis`, `static_value`: the axis, and its value in this case.
        - `trace_s`, `lower_s`, `compile_s`, and their sum `build_s`: medians over processes.
        - `same_program`: whether XLA built what it had built for an earlier value, with the other
          axes equal: the value was paid for and changed nothing. None where no fingerprint is
          known.
        - `n_values`: values of the axis, with the other axes equal.
        - `per_value_s`: mean `build_s` of those values: what one more costs, about.

    Warns:
        HarnessWarning: `axes` is None and no record names a static axis.

    Raises:
        UsageError: this is no frame of results; it has no such axis, or no such workload.
    """
    check(frame, "harness.static_costs")
    _check_given(frame, axes)
    table, columns = _builds(frame, _STATIC)
    column_of = dict(zip(axis_columns(frame), columns, strict=True))
    found = []
    for part in _alike(table, ["workload", "static"]):
        for axis in _static(part, axes):
            name = column_of.get(axis_column(axis))
            if name is None:
                continue
            part_of_axis = part[part[name].notna()]
            others = [*CASE, *(column for column in columns if column != name)]
            found += [_of_values(values, axis, name) for values in _alike(part_of_axis, others)]
    names = [*CASE, *columns, "static_axis", "static_value", *SECONDS]
    names += ["same_program", "n_values", "per_value_s"]
    whole = pd.concat(found) if found else pd.DataFrame(columns=names, dtype=object)
    types = {**dict.fromkeys([*CASE, "static_axis"], "str"), "n_values": "int64"}
    types |= dict.fromkeys((*SECONDS, "per_value_s"), "float64")
    return whole[names].astype(types).reset_index(drop=True)


def _of_values(part: pd.DataFrame, axis: str, column: str) -> pd.DataFrame:
    """Return the rows of cases that differ in one static axis only."""
    prints = part["fingerprint"]
    same = prints.duplicated().astype(object).where(prints != "", None)
    return part.assign(
        static_axis=axis,
        static_value=pd.Series(part[column], dtype=object),
        same_program=same,
        n_values=len(part),
        per_value_s=part["build_s"].mean(),
    )


def _static(
    part: pd.DataFrame, axes: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> list[str]:
    """Return the names of the static axes of rows of one workload."""
    if axes is None:
        return [name for name in part["static"].iloc[0].split(", ") if name]
    if isinstance(axes, Mapping):
        return list(axes.get(part["workload"].iloc[0], ()))
    return list(axes)


def _check_given(
    frame: pd.DataFrame, axes: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> None:
    if isinstance(axes, str):
        raise UsageError(f"axes={axes!r} is one text, expected names: axes=[{axes!r}].")
    if frame.empty:
        return
    if axes is None:
        if "static" not in frame or not frame["static"].fillna("").any():
            warnings.warn(
                "No record of this frame names a static axis: the workloads have none, or were "
                "measured before records said so. Name them: "
                "harness.static_costs(frame, axes=['unroll']).",
                HarnessWarning,
                stacklevel=3,
            )
        return
    if isinstance(axes, Mapping):
        there = sorted(set(frame["workload"]))
        if lacking := [name for name in axes if name not in there]:
            known = ", ".join(there)
            raise UsageError(f"The frame has no workload {lacking[0]!r}. It has: {known}.")
        axes = [axis for names in axes.values() for axis in names]
    for axis in axes:
        check_axis(frame, axis)


def _builds(frame: pd.DataFrame, taken: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return a row per case that was compiled, in the order of the frame, and its columns of axes.

    Args:
        frame: one that :func:`check` has let through.
        taken: columns that the caller adds; an axis of such a name becomes `axis_<name>`.

    Returns:
        :data:`CASE`, the axes, then :data:`SECONDS` (medians over processes;
        a stage that does not happen, such as `pmap`'s trace, is NaN and counts as 0 in the sum),
        `fingerprint`, `static` (the static axes joined by `, `, where records name them) and
        `environment`.
    """
    rows = measured(frame)
    rows = rows[rows["stage"].isin(STEPS)]
    key = keys(rows, case_columns(frame))
    stages = by_stage(rows, key).reindex(columns=STEPS).add_suffix("_s").astype(float)
    stages = stages[stages["compile_s"].notna()]
    stages["build_s"] = stages.sum(axis=1)

    axes = axis_columns(frame)
    names = free_names(axes, {*taken, *SECONDS})
    about = rows[[*CASE, *axes]].rename(columns=names)
    for name in _ABOUT:
        about[name] = rows[name].fillna("") if name in rows else ""
    about = about.set_index(key)
    # A fingerprint may be known from one stage's row only.
    known = about.sort_values("fingerprint", ascending=False, kind="stable")
    about = known[~known.index.duplicated()].reindex(stages.index)
    table = about.drop(columns=list(_ABOUT)).join(stages).join(about[list(_ABOUT)])
    return table.reset_index(drop=True), [names.get(axis, axis) for axis in axes]


def _alike(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows that are equal in `columns`, in the order of the table."""
    for _, part in table.groupby(keys(table, columns), sort=False):
        yield part
