"""What is inside of compiles: XLA's passes, by group, one bar per case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.compile_times import COLUMNS
from harness.frame.tables import case_texts
from harness.program.compiler.groups import GROUPS
from harness.records.units import seconds_text
from harness.report import charts
from harness.report.cases import machine_picks, one_case
from harness.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.report.figures.compile import COLOURS

if TYPE_CHECKING:
    from harness.report.measured import Measured

OTHERS = "other passes of the group"
"""What a record does not tell one by one, together."""


def _content(measured: Measured) -> Content | None:
    data = measured.compile_times
    if data.empty:
        return None
    axes = [name for name in data.columns if name not in COLUMNS]
    data = data.assign(case=case_texts(data, axes, scenario=True), one_case=one_case(data, COLUMNS))
    # A later row replaces an earlier one of the same pass.
    columns = ["machine", "workload", "case", "group", "part", "pass"]
    passes = _by_pass(data[~data.duplicated(columns, keep="last")])
    return Content((_figure(passes),), (_table(passes),))


def _by_pass(data: pd.DataFrame) -> pd.DataFrame:
    """Return the passes, with what is left of each group in a row of its own."""
    keys = ["machine", "workload", "case", "group", "part"]
    is_group = data["pass"] == ""
    told = data[~is_group].groupby(keys)["wall_s"].sum()
    groups = data[is_group].set_index(keys)
    left = groups.assign(wall_s=groups["wall_s"].sub(told, fill_value=0.0).loc[groups.index])
    left = left[left["wall_s"] > 0].reset_index().assign(**{"pass": OTHERS})
    found = pd.concat([data[~is_group], left], ignore_index=True)
    whole = found.groupby(keys[:3])["wall_s"].transform("sum")
    named = found["group"] + (": " + found["part"]).where(found["part"] != "", "")
    return found.assign(share=found["wall_s"] / whole, where=named)


def _figure(data: pd.DataFrame) -> Figure:
    shown = [group for group in GROUPS if group in set(data["group"])]
    chart = (
        charts.with_told(charts.top("compiles", "datum.wall_s"), "wall_s")
        .transform_calculate(order=f"indexof({shown!r}, datum.group)")
        .mark_bar(height={"band": 0.72}, stroke="white", strokeWidth=0.2)
        .encode(
            x=charts.seconds("wall_s:Q", "wall time of the compile"),
            y=charts.by_case(),
            color=charts.colours("group:N", COLOURS, shown),
            order="order:Q",
            tooltip=[
                "workload:N",
                "case:N",
                "where:N",
                "pass:N",
                charts.told("wall_s"),
                alt.Tooltip("share:Q", format=".0%"),
            ],
        )
        .properties(height=alt.Step(22))
    )
    sums = data.groupby("where")["wall_s"].sum().sort_values(ascending=False)
    shares = ", ".join(f"{name} {value / sums.sum():.0%}" for name, value in sums[:4].items())
    names = (data["workload"] + " " + data["case"]).str.strip()
    longest = data["wall_s"].groupby(names).sum().nlargest(1)
    return Figure(
        "compiles",
        "Inside of the compiles that take longest: a bar per case, its parts XLA's passes",
        f"Over all cases: {shares}. Longest: {longest.index[0]}, {seconds_text(longest.iloc[0])}.",
        chart,
        ("compiles",),
        picks=machine_picks(data),
    )


def _table(data: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case", "group", "part", "pass"),
        *plain("where", "target", "one_case", hidden=True),
        *plain("machine", hidden=data["machine"].nunique() < 2),
        Column("wall_s", "wall", ColumnKind.SECONDS),
        Column("share", "of the compile", ColumnKind.SHARE),
        Column("count", "times", ColumnKind.COUNT),
    )
    ordered = data.sort_values("wall_s", ascending=False, kind="stable")
    return Table("compiles", "Passes of XLA", columns, ordered)


SECTION = Section(
    name="compiles",
    title="Inside of compiles",
    intro="One compile more of each case, traced by XLA's own events and not timed: what its "
    "passes took, without what is inside of them. A moment in which several threads work is shared "
    "among them.",
    content=_content,
    missing="No compile was looked into.",
    command="harness run --inside",
)
