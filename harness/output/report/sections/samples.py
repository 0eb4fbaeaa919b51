"""The samples behind a value: one of each process, of the last two times it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.output.report import charts
from harness.output.report.charts import BLUE, GREY
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

_COLOURS = {"before": GREY, "last": BLUE}


def _content(measured: Measured) -> Content | None:
    rows = measured.last_two
    rows = rows[(rows["status"] == "ok") & (rows["samples"].map(len) > 0)]
    if rows.empty:
        return None
    rows = rows.assign(name=(rows["workload"] + " " + rows["case"]).str.strip())
    lists = rows["samples"].map(lambda values: list(range(1, len(values) + 1)))
    rows = rows.assign(at=lists).sort_values(["name", "stage", "time"], kind="stable")
    return Content((_figure(rows),), (_table(rows),))


def _figure(rows: pd.DataFrame) -> Figure:
    base = charts.with_told(charts.rows("samples"), "samples").encode(
        x=alt.X("at:O", title="process, as it was measured", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(
            "samples:Q",
            title="time",
            scale=alt.Scale(zero=False),
            axis=charts.axis(labelExpr=charts.SECONDS_LABEL),
        ),
        color=charts.colours("time:N", _COLOURS, list(_COLOURS)),
        tooltip=["time:N", "label:N", "at:O", charts.told("samples")],
    )
    middle = (
        charts.rows("samples")
        .mark_rule(strokeDash=[4, 3], aria=False)
        .encode(y="median(samples):Q", color=charts.colours("time:N", _COLOURS, list(_COLOURS)))
    )
    start = rows.iloc[rows["value"].argmax()]
    return Figure(
        "samples",
        "One stage of one case, process by process",
        "Points are processes, the broken lines medians: of the last time, and of the time before.",
        (middle + base.mark_point(filled=True, size=60, opacity=0.85)).properties(height=260),
        ("samples",),
        picks=(("name", "case", str(start["name"])), ("stage", "stage", str(start["stage"]))),
        explode=("at", "samples"),
    )


def _table(rows: pd.DataFrame) -> Table:
    columns = (
        Column("name", "case"),
        *plain("stage", "time"),
        Column("label", "measured"),
        *plain("workload", "target", "machine", "one_case", hidden=True),
        Column("at", "process", ColumnKind.LIST),
        Column("samples", "seconds", ColumnKind.LIST),
    )
    return Table("samples", "The value of each process", columns, rows)


SECTION = Section(
    name="samples",
    title="Process by process",
    intro="Every value of this page is a median over processes. These are the processes: whether "
    "they agree, and whether the last time stands apart from the time before.",
    content=_content,
)
