"""When what was built: threads, stages, hits and misses."""

from __future__ import annotations

import altair as alt

from harness.records.units import counted, seconds_text
from harness.report import charts
from harness.report.content import Column, ColumnKind, Content, Figure, Section, Table
from harness.report.profile.bars import Timeline, timeline
from harness.report.profile.tables import Shown

MARKS = {
    "cache hit": "triangle-up",
    "cache miss, written": "triangle-down",
    "cache miss, not written": "cross",
    "cache failed": "square",
    "cleared": "diamond",
}

DIGITS = 10
"""Significant digits of places in time: what is seen after zooming in."""


def _content(shown: Shown) -> Content | None:
    drawn = timeline(shown)
    if drawn.bars.empty:
        return None
    tables = (_bars(drawn), _marks(drawn))
    return Content((_figure(drawn),), tables, notes=tuple(drawn.notes))


def _figure(drawn: Timeline) -> Figure:
    shown = [stage for stage in charts.PARTS if stage in set(drawn.bars["stage"])]
    row = alt.Y(
        "row:N",
        title=None,
        sort=drawn.rows,
        scale=alt.Scale(domain=drawn.rows),
        axis=alt.Axis(grid=True, ticks=False, domain=False, labelPadding=6),
    )
    window = alt.Scale(domainMin=alt.ExprRef("from"), domainMax=alt.ExprRef("to"), nice=False)
    axis = alt.Axis(labelExpr=charts.SECONDS_LABEL, tickCount=6, labelOverlap=True)
    told = ["function:N", alt.Tooltip("call_site:N", title="called at"), *("cause:N", "argument:N")]
    bars = (
        charts.rows("timeline")
        .transform_calculate(seconds="datum.end - datum.begin")
        .mark_bar(height={"band": 0.66}, clip=True, minBandSize=6)
        .encode(
            x=alt.X("begin:Q", title="since the start", scale=window, axis=axis),
            x2="end:Q",
            y=row,
            color=charts.colours("stage:N", charts.PARTS, shown),
            tooltip=[
                *told,
                "stage:N",
                alt.Tooltip("seconds:Q", title="took (s)", format=".3s"),
                alt.Tooltip("begin:Q", title="began at (s)", format=".4f"),
                alt.Tooltip("outcome:N", title="persistent cache"),
                alt.Tooltip("builds:Q", title="builds in this bar"),
            ],
        )
    )
    answers = [what for what in MARKS if what in set(drawn.marks["what"])]
    layers = [bars]
    if answers:
        layers.append(
            charts.rows("marks")
            .mark_point(clip=True, size=36, filled=True, opacity=1, yOffset=-12)
            .encode(
                x=alt.X("at:Q", scale=window, axis=axis, title="since the start"),
                y=row,
                fill=alt.value("currentColor"),
                shape=alt.Shape(
                    "what:N",
                    title=None,
                    scale=alt.Scale(domain=answers, range=[MARKS[what] for what in answers]),
                    legend=alt.Legend(
                        orient="bottom", symbolFillColor="currentColor", symbolStrokeWidth=0
                    ),
                ),
                tooltip=[
                    alt.Tooltip("what:N", title="cache"),
                    *told,
                    alt.Tooltip("at:Q", title="at (s)", format=".4f"),
                    alt.Tooltip("times:Q"),
                ],
            )
        )
    chart = (
        alt.layer(*layers)
        .add_params(alt.param(name="from", value=0), alt.param(name="to", value=drawn.length))
        .properties(height=alt.Step(34))
    )
    seconds = drawn.bars["end"] - drawn.bars["begin"]
    stages = seconds.groupby(drawn.bars["stage"]).sum()
    parts = ", ".join(f"{stage} {seconds_text(stages[stage])}" for stage in shown)
    return Figure(
        "timeline",
        "What was built when",
        f"{counted(len(drawn.rows), 'thread')}, {seconds_text(drawn.length)} in all: {parts}. "
        "Drag to move, Ctrl and the wheel to zoom, or use the buttons.",
        chart,
        ("timeline", "marks"),
        zoom=True,
    )


def _bars(drawn: Timeline) -> Table:
    columns = (
        Column("function", "function"),
        Column("call_site", "called at"),
        Column("stage", "stage"),
        Column("begin", "began at", ColumnKind.SECONDS, digits=DIGITS),
        Column("end", "ended at", ColumnKind.SECONDS, digits=DIGITS),
        Column("row", "thread"),
        Column("cause", "cause"),
        Column("argument", "argument"),
        Column("outcome", "persistent cache"),
        Column("builds", "builds", ColumnKind.COUNT),
        Column("process", "process", hidden=True),
    )
    return Table("timeline", "The bars", columns, drawn.bars)


def _marks(drawn: Timeline) -> Table:
    columns = (
        *(Column(name, name) for name in ("what", "function")),
        Column("call_site", "called at"),
        *(Column(name, name) for name in ("cause", "argument", "row")),
        Column("at", "at", ColumnKind.SECONDS, digits=DIGITS),
        Column("times", "times", ColumnKind.COUNT),
        Column("process", "process", hidden=True),
    )
    return Table("marks", "What the caches did", columns, drawn.marks)


SECTION = Section(
    name="timeline",
    title="Timeline",
    intro="Each row is a thread; a bar is a stage of a build. Where there is no bar, the thread "
    "built nothing: it ran the program, computed or waited.",
    content=_content,
    missing="Nothing was traced, lowered, compiled or loaded.",
    command="harness profile -- python PROGRAM",
)
