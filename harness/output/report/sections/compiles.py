"""What is inside of compiles: XLA's passes, a bar per case; the flame graph of one compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from harness.frame.cases import case_texts
from harness.frame.frame import axes_of_cases
from harness.output.report import charts
from harness.output.report.cases import machine_picks, one_case
from harness.output.report.charts import BLUE, GREEN, GREY, OLIVE, ORANGE, PINK, SKY, VERMILLION
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.program.compiler import tree
from harness.program.compiler.inside import Inside, PassBranch
from harness.records.units import seconds_text, share_text

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

COLOURS = {
    tree.CONVERSION: "#BBBBBB",
    tree.PASSES: SKY,
    tree.FUSION: GREEN,
    tree.LAYOUT: PINK,
    tree.SCHEDULING: OLIVE,
    tree.BUFFERS: "#88CCEE",
    tree.FOLDING: "#DDCC77",
    tree.AUTOTUNING: VERMILLION,
    tree.GENERATION: ORANGE,
    tree.SERIALISATION: BLUE,
    tree.REST: GREY,
}

LEAST = 0.0005
"""Of the compile's wall time: what takes less would be narrower than a pixel."""

WIDTH = 960
"""Pixels, where there is no page that decides."""

_ROW = 20

OTHERS = "other passes of the group"
"""What a record does not tell one by one, together."""


def _content(measured: Measured) -> Content | None:
    data = measured.compile_times
    if data.empty:
        return None
    axes = axes_of_cases(data)
    others = [name for name in data.columns if name not in axes]
    data = data.assign(case=case_texts(data, axes, scenario=True), one_case=one_case(data, others))
    # A later row replaces an earlier one of the same pass.
    columns = ["machine", "workload", "case", "group", "part", "pass"]
    passes = _by_pass(data[~data.duplicated(columns, keep="last")])
    return Content((_figure(passes),), (_table(passes),))


def _by_pass(data: pd.DataFrame) -> pd.DataFrame:
    """Return the passes, with what is left of each group in a row of its own."""
    keys = ["machine", "workload", "case", "group", "part"]
    is_group = data["pass"] == ""
    totals = data[~is_group].groupby(keys)["wall_s"].sum()
    groups = data[is_group].set_index(keys)
    left = groups.assign(wall_s=groups["wall_s"].sub(totals, fill_value=0.0).loc[groups.index])
    left = left[left["wall_s"] > 0].reset_index().assign(**{"pass": OTHERS})
    rows = pd.concat([data[~is_group], left], ignore_index=True)
    whole = rows.groupby(keys[:3])["wall_s"].transform("sum")
    named = rows["group"] + (": " + rows["part"]).where(rows["part"] != "", "")
    return rows.assign(share=rows["wall_s"] / whole, where=named)


def _figure(data: pd.DataFrame) -> Figure:
    shown = [group for group in tree.GROUPS if group in set(data["group"])]
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
    shares = ", ".join(
        f"{name} {share_text(value, sums.sum())}" for name, value in sums[:4].items()
    )
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


def chart(inside: Inside, label: str, width: int) -> Any:
    """Return an altair chart: a bar per pass and place, as wide as its share of the wall time.

    What is inside of a pass stands under it, the longest first; the bare rest is its own time. The
    wheel and a drag zoom. `width` is in pixels, 0 for that of the page.
    """
    data = pd.DataFrame(_bars(inside.tree, 0.0, 0, LEAST * inside.wall_s))
    shown = [group for group in tree.GROUPS if group in set(data["group"])]
    data["share"] = data["wall"] / inside.wall_s
    base = charts.with_told(alt.Chart(data), "wall", "own", "threads").encode(
        y=alt.Y("level:Q", axis=None, scale=alt.Scale(reverse=True, zero=True, nice=False)),
        tooltip=[
            alt.Tooltip("name:N", title="pass"),
            "group:N",
            "count:Q",
            charts.told("wall", "wall, with what is inside"),
            charts.told("own", "wall, its own"),
            charts.told("threads", "of all threads"),
            alt.Tooltip("share:Q", format=".1%", title="of the compile"),
        ],
    )
    x = charts.seconds("begin:Q", "wall time of the compile")
    x = x.scale(domain=[0, inside.wall_s], nice=False)
    bars = base.mark_rect(stroke="white", strokeWidth=0.5, clip=True).encode(
        x=x, x2="end:Q", y2="below:Q", color=charts.colours("group:N", COLOURS, shown)
    )
    # Of a bar that begins left of what is shown, the name begins where the view does.
    left = "max(0, scale('x', datum.begin))"
    room = f"min(width, scale('x', datum.end)) - {left} - 8"
    names = base.mark_text(
        align="left",
        baseline="middle",
        color="#111",
        fontSize=11,
        dy=_ROW / 2,
        dx=4,
        x=alt.ExprRef(left),
        limit=alt.ExprRef(f"max(1, {room})"),
        opacity=alt.ExprRef(f"{room} > 24 ? 1 : 0"),
    ).encode(text="name:N")
    depth = int(data["level"].max()) + 1
    zoom = alt.selection_interval(bind="scales", encodings=["x"])
    return (
        alt.layer(bars.add_params(zoom), names)
        .properties(width=width or "container", height=depth * _ROW, title=label)
        .configure_title(anchor="start", fontSize=13)
        .configure_legend(orient="top", columns=3)
        .configure_axis(grid=False)
        .configure_view(stroke=None)
    )


def _bars(branch: PassBranch, begin: float, level: int, least: float) -> Iterator[dict[str, Any]]:
    """Yield a branch and what is inside of it, that takes `least` seconds."""
    yield {
        "name": branch.name,
        "group": branch.group,
        "count": branch.count,
        "begin": begin,
        "end": begin + branch.wall_s,
        "level": level,
        "below": level + 1,
        "wall": branch.wall_s,
        "own": branch.own_wall_s,
        "threads": branch.threads_s,
    }
    for one in branch.inside:
        if one.wall_s >= least:
            yield from _bars(one, begin, level + 1, least)
        begin += one.wall_s


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
