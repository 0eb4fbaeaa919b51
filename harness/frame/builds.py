"""What it took to build the program of each case: trace, lower and compile, and which it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from harness.frame.cases import CASE, by_stage, case_columns, free_names, keys, measured
from harness.frame.frame import axis_columns

STEPS = ("trace", "lower", "compile")
"""The stages that build a program."""

SECONDS = ("trace_s", "lower_s", "compile_s", "build_s")
"""Columns of seconds; `build_s` is the sum of the others."""

_ABOUT = ("fingerprint", "static", "environment")


def builds(frame: pd.DataFrame, taken: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return a row per case that was compiled, in the order of the frame, and its columns of axes.

    Args:
        frame: one that :func:`harness.frame.cases.check` has let through.
        taken: columns that the caller adds; an axis of such a name becomes `axis_<name>`.

    Returns:
        :data:`harness.frame.cases.CASE`, the axes, then :data:`SECONDS` (medians over processes;
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


def alike(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows that are equal in `columns`, in the order of the table."""
    for _, part in table.groupby(keys(table, columns), sort=False):
        yield part
