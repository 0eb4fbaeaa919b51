"""How each stage changed over commits and nights, and where its level changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.frame import ORIGIN
from harness.output.report import charts
from harness.output.report.cases import full_case_texts, one_case, origin_labels
from harness.output.report.charts import BLUE, VERMILLION
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.verdicts.history.change_points import COLUMNS
from harness.verdicts.history.points import SERIES

if TYPE_CHECKING:
    from harness.output.report.measured import Measured


def _content(measured: Measured) -> Content | None:
    if measured.points.empty:
        return None
    changes = _changes(measured.changes)
    lines, moments = _lines(measured.points)
    return Content(
        (_figure(lines, changes, len(moments)),),
        (_series_table(lines), _moments_table(moments), _changes_table(changes)),
        shown=("changes",) if len(changes) else (),
        pair=("history", "moments"),
        notes=() if len(changes) else ("No change point was found.",),
    )


def _lines(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row per series with lists of its points, and a row per origin."""
    origin = points.groupby(ORIGIN, sort=False, dropna=False).ngroup()
    # What one series puts in order, all of a machine do: the longest chain of positions.
    moments = (
        points.assign(at=origin)
        .groupby("at")
        .agg({name: "first" for name in ORIGIN} | {"started_at": "max", "position": "max"})
    )
    moments = moments.sort_values(["position", "started_at"], kind="stable")
    moments["place"] = range(len(moments))
    moments["label"] = origin_labels(moments["night"], moments["started_at"], moments["commit"])
    first = points.drop_duplicates("series", keep="last").set_index("series")
    names = full_case_texts(first, SERIES)
    points = points.assign(at=origin.map(moments["place"]))
    lists = points.groupby("series")[["at", "value"]].agg(list)
    kept = ["workload", "target", "machine", "stage"]
    lines = first[kept].assign(case=names, one_case=one_case(first, SERIES)).join(lists)
    lines["name"] = (lines["workload"] + " " + lines["case"]).str.strip()
    lines = lines.reset_index()
    return lines.sort_values(["name", "series"], kind="stable").reset_index(drop=True), moments


def _changes(changes: pd.DataFrame) -> pd.DataFrame:
    changes = changes.reset_index(drop=True)
    changes["case"] = pd.Series(full_case_texts(changes, COLUMNS), changes.index, dtype="str")
    changes["one_case"] = pd.Series(one_case(changes, COLUMNS), changes.index, dtype="str")
    changes["name"] = (changes["workload"] + " " + changes["case"]).str.strip()
    changes["label"] = origin_labels(
        changes["night_after"], changes["started_at"], changes["commit_after"]
    )
    changes["before"] = changes["night_before"].where(
        changes["night_before"] != "", changes["commit_before"].str[:8]
    )
    same = {True: "the same", False: "another"}
    changes["program"] = [same.get(value, "not known") for value in changes["same_program"]]
    away = (changes["ratio"].where(changes["ratio"] >= 1, 1 / changes["ratio"])).rename("away")
    return changes.join(away).sort_values("away", ascending=False, kind="stable")


def _figure(lines: pd.DataFrame, changes: pd.DataFrame, moments: int) -> Figure:
    when = alt.LookupData(
        alt.NamedData("moments"), key="place", fields=["label", "env", "commit", "night"]
    )
    base = charts.rows("history").transform_lookup(lookup="at", from_=when)
    base = charts.with_told(base, "value")
    x = alt.X(
        "label:N",
        title=None,
        sort=alt.EncodingSortField("at", op="min"),
        axis=alt.Axis(labelAngle=-50, labelOverlap=True, labelLimit=150, grid=False),
    )
    points = base.encode(
        x=x,
        y=charts.seconds("value:Q", "time", channel="y"),
        detail="series:N",
        tooltip=["name:N", "stage:N", "label:N", "env:N", charts.told("value", "time")],
    )
    steps = (
        charts.rows("changes")
        .mark_rule(color=VERMILLION, strokeWidth=2, opacity=0.7, aria=False)
        .encode(x=alt.X("label:N"), tooltip=["environment:N", "facts:N", "label:N"])
    )
    chart = (
        points.mark_line(color=BLUE)
        + points.mark_point(filled=True, size=45, opacity=1, color=BLUE)
        + steps
    ).properties(height=300)
    start = changes.iloc[0] if len(changes) else lines.iloc[0]
    count = len(changes)
    return Figure(
        "history",
        "One stage of one case over time",
        f"{len(lines)} series over {moments} nights or commits; {count} change "
        f"{'point' if count == 1 else 'points'}, the upright lines.",
        chart,
        ("history", "moments", "changes"),
        picks=(("name", "case", str(start["name"])), ("stage", "stage", str(start["stage"]))),
        explode=("at", "value"),
    )


def _series_table(lines: pd.DataFrame) -> Table:
    columns = (
        Column("name", "case"),
        *plain("stage"),
        *plain("workload", "target", "machine", "one_case", hidden=True),
        Column("series", "series", ColumnKind.COUNT, hidden=True),
        Column("at", "number", ColumnKind.LIST),
        Column("value", "seconds", ColumnKind.LIST),
    )
    return Table("history", "Time of one stage over nights and commits", columns, lines)


def _moments_table(moments: pd.DataFrame) -> Table:
    columns = (
        Column("place", "number", ColumnKind.COUNT),
        *plain("label", "night", "commit", "env", "machine"),
    )
    return Table("moments", "Nights and commits", columns, moments)


def _changes_table(changes: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case", "stage"),
        *plain("name", "target", "machine", "one_case", hidden=True),
        Column("ratio", "after / before", ColumnKind.RATIO),
        Column("before_s", "before", ColumnKind.SECONDS),
        Column("after_s", "after", ColumnKind.SECONDS),
        Column("before", "last before"),
        Column("label", "first after"),
        *plain("program", "environment", "facts"),
    )
    return Table("changes", "Change points, the largest first", columns, changes)


SECTION = Section(
    name="history",
    title="History",
    intro="Each stage over commits and nights, in seconds as measured, of trace, lower and compile "
    "in CPU seconds where they are known. Change points are where the level changed, and not where "
    "one night stood out.",
    content=_content,
    missing="Everything was measured at one commit and in one night, so there is no history yet.",
    command="harness run --night NAME",
)
