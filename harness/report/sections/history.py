"""How each stage changed over commits and nights, and where its level changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.frame.frame import axis_columns
from harness.frame.tables import case_texts
from harness.report import charts
from harness.report.charts import VERMILLION
from harness.report.content import COUNT, LIST, RATIO, SECONDS, Column, Figure, Part, Table
from harness.verdicts.history import history, series
from harness.verdicts.history.points import SERIES

if TYPE_CHECKING:
    import pandas as pd

_ORIGIN = ["machine", "night", "commit", "dirty", "env", "effort"]


def section(frame: pd.DataFrame) -> Part:
    """Return the section; `frame` is of :func:`harness.load`."""
    about: dict[str, Any] = {
        "name": "history",
        "title": "History",
        "intro": "Each stage over commits and nights, in seconds corrected for the drift of the "
        "machine where every process measured the reference, and as measured. Change points are "
        "where the level changed, and not where one night stood out.",
    }
    points = series(frame[frame["unit"] == "seconds"])
    points = points[points["judged"].notna()]
    points = points[points.groupby("series")["position"].transform("size") > 1]
    if points.empty:
        return Part(
            **about,
            missing="Everything was measured at one commit and in one night, so there is no "
            "history yet.",
            command="harness run --night NAME",
        )
    changes = _changes(history(frame))
    lines, moments = _lines(points)
    return Part(
        **about,
        figures=(_figure(lines, changes, len(moments)),),
        tables=(_series_table(lines), _moments_table(moments), _changes_table(changes)),
        shown=("changes",) if len(changes) else (),
        notes=() if len(changes) else ("No change point was found.",),
    )


def _names(rows: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series[Any]:
    """Return the case of each row as text; `columns` are those that are no axes."""
    import pandas as pd

    axes = [name for name in axis_columns(rows) if name not in columns]
    texts = case_texts(rows[["precision", "transform", "target", *axes]])
    shown = rows["scenario"].map(lambda s: f"scenario={s}" if s not in ("", "off") else "")
    where = "on " + rows["machine"] if rows["machine"].nunique() > 1 else ""
    parts = pd.DataFrame({"text": texts, "scenario": shown, "where": where}, index=rows.index)
    joined = [", ".join(filter(None, row)) for row in parts.itertuples(index=False)]
    return pd.Series(joined, index=rows.index, dtype="str")


def _lines(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row per series with lists of its points, and a row per origin."""
    origin = points.groupby(_ORIGIN, sort=False, dropna=False).ngroup()
    # What one series puts in order, all of a machine do: the longest chain of positions.
    moments = (
        points.assign(at=origin)
        .groupby("at")
        .agg({name: "first" for name in _ORIGIN} | {"started_at": "max", "position": "max"})
    )
    moments = moments.sort_values(["position", "started_at"], kind="stable")
    moments["place"] = range(len(moments))
    moments["label"] = label(moments["night"], moments["started_at"], moments["commit"])
    first = points.drop_duplicates("series", keep="last").set_index("series")
    names = _names(first, SERIES)
    points = points.assign(at=origin.map(moments["place"]))
    lists = points.groupby("series")[["at", "judged", "value"]].agg(list)
    kept = ["workload", "target", "machine", "stage"]
    lines = first[kept].assign(case=names).join(lists)
    lines["name"] = (lines["workload"] + " " + lines["case"]).str.strip()
    lines = lines.reset_index()
    return lines.sort_values(["name", "series"], kind="stable").reset_index(drop=True), moments


def label(night: Any, started_at: Any, commit: Any) -> Any:
    """Return the names of origins: the night or else the date, and the commit."""
    days = started_at.dt.strftime("%Y-%m-%d").fillna("no date")
    return night.where(night != "", days) + " " + commit.str[:8]


def _changes(found: pd.DataFrame) -> pd.DataFrame:
    from harness.verdicts.history.change_points import COLUMNS

    found = found.reset_index(drop=True)
    found["case"] = _names(found, COLUMNS)
    found["name"] = (found["workload"] + " " + found["case"]).str.strip()
    found["label"] = label(found["night_after"], found["started_at"], found["commit_after"])
    found["before"] = found["night_before"].where(
        found["night_before"] != "", found["commit_before"].str[:8]
    )
    same = {True: "the same", False: "another"}
    found["program"] = [same.get(value, "not known") for value in found["same_program"]]
    away = (found["ratio"].where(found["ratio"] >= 1, 1 / found["ratio"])).rename("away")
    return found.join(away).sort_values("away", ascending=False, kind="stable")


def _figure(lines: pd.DataFrame, changes: pd.DataFrame, moments: int) -> Figure:
    import altair as alt

    when = alt.LookupData(
        alt.NamedData("moments"), key="place", fields=["label", "env", "commit", "night"]
    )
    base = charts.rows("history").transform_lookup(lookup="at", from_=when)
    base = charts.with_told(base, "judged", "value")
    x = alt.X(
        "label:N",
        title=None,
        sort=alt.EncodingSortField("at", op="min"),
        axis=alt.Axis(labelAngle=-50, labelOverlap=True, labelLimit=150, grid=False),
    )
    judged = base.encode(
        x=x,
        y=charts.seconds("judged:Q", "time", channel="y"),
        detail="series:N",
        tooltip=[
            *("name:N", "stage:N", "label:N", "env:N"),
            *(charts.told("judged", "corrected"), charts.told("value", "as measured")),
        ],
    )
    raw = base.mark_line(strokeDash=[3, 3], opacity=0.45, color="#0072B2").encode(
        x=x, y=charts.seconds("value:Q", "time", channel="y"), detail="series:N"
    )
    steps = (
        charts.rows("changes")
        .mark_rule(color=VERMILLION, strokeWidth=2, opacity=0.7)
        .encode(x=alt.X("label:N"), tooltip=["environment:N", "facts:N", "label:N"])
    )
    chart = (
        raw
        + judged.mark_line(color="#0072B2")
        + judged.mark_point(filled=True, size=45, opacity=1, color="#0072B2")
        + steps
    ).properties(height=300)
    start = changes.iloc[0] if len(changes) else lines.iloc[0]
    count = len(changes)
    return Figure(
        "history",
        "One stage of one case over time",
        f"{len(lines)} series over {moments} nights or commits; {count} change "
        f"{'point' if count == 1 else 'points'}. Solid: corrected for drift; dashed: as measured; "
        "upright lines: change points.",
        chart,
        ("history", "moments", "changes"),
        picks=(
            ("name", "case", str(start["name"])),
            ("stage", "stage", str(start["stage"])),
        ),
        explode=("at", "judged", "value"),
    )


def _series_table(lines: pd.DataFrame) -> Table:
    columns = (
        Column("name", "case"),
        Column("stage", "stage"),
        *(Column(name, name, hidden=True) for name in ("workload", "target", "machine")),
        Column("series", "series", COUNT, hidden=True),
        Column("at", "number", LIST),
        Column("judged", "corrected", LIST),
        Column("value", "as measured", LIST),
    )
    return Table("history", "Time of one stage over nights and commits", columns, lines)


def _moments_table(moments: pd.DataFrame) -> Table:
    columns = (
        Column("place", "number", COUNT),
        *(Column(name, name) for name in ("label", "night", "commit", "env", "machine")),
    )
    return Table("moments", "Nights and commits", columns, moments)


def _changes_table(changes: pd.DataFrame) -> Table:
    columns = (
        *(Column(name, name) for name in ("workload", "case", "stage")),
        *(Column(name, name, hidden=True) for name in ("name", "target", "machine")),
        Column("ratio", "after / before", RATIO),
        Column("before_s", "before", SECONDS),
        Column("after_s", "after", SECONDS),
        Column("before", "last before"),
        Column("label", "first after"),
        Column("program", "program"),
        Column("environment", "environment"),
        Column("facts", "facts"),
    )
    return Table("changes", "Change points, the largest first", columns, changes)
