"""What each value of a static argument costs: a program of its own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.errors import HarnessWarning, UsageError
from harness.frame.cases import CASE, SECONDS, alike, builds, check, check_axis
from harness.frame.frame import axis_column, axis_columns

if TYPE_CHECKING:
    import pandas as pd

_OWN = ("static_axis", "static_value", "same_program", "n_values", "per_value_s")


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
        `machine`, `commit`, `dirty`, `env`, `effort`, `night`, `jax`, `workload`, `version`,
        `target`, `transform`, `precision`, `scenario`, a column per axis, then

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
    import pandas as pd

    check(frame, "harness.static_costs")
    _check_given(frame, axes)
    table, columns = builds(frame, _OWN)
    column_of = dict(zip(axis_columns(frame), columns, strict=True))
    found = []
    for part in alike(table, ["workload", "static"]):
        for axis in _static(part, axes):
            name = column_of.get(axis_column(axis))
            if name is None:
                continue
            part_of_axis = part[part[name].notna()]
            others = [*CASE, *(column for column in columns if column != name)]
            found += [_of_values(values, axis, name) for values in alike(part_of_axis, others)]
    names = [*CASE, *columns, "static_axis", "static_value", *SECONDS]
    names += ["same_program", "n_values", "per_value_s"]
    whole = pd.concat(found) if found else pd.DataFrame(columns=names, dtype=object)
    types = {**dict.fromkeys([*CASE, "static_axis"], "str"), "n_values": "int64"}
    types |= dict.fromkeys((*SECONDS, "per_value_s"), "float64")
    return whole[names].astype(types).reset_index(drop=True)


def _of_values(part: pd.DataFrame, axis: str, column: str) -> pd.DataFrame:
    """Return the rows of cases that differ in one static axis only."""
    import pandas as pd

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
        for workload in axes:
            if workload not in there:
                raise UsageError(
                    f"The frame has no workload {workload!r}. It has: {', '.join(there)}."
                )
        axes = [axis for names in axes.values() for axis in names]
    for axis in axes:
        check_axis(frame, axis)
