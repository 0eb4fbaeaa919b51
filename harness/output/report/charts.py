"""What all charts have in common: colours, axes, and rows of cases."""

from __future__ import annotations

from typing import Any, Literal

import altair as alt

from harness.stages.registry import STAGES

# Okabe and Ito's palette: told apart with any colour vision, and in print.
GREY, SKY, ORANGE, VERMILLION, GREEN = "#999999", "#56B4E9", "#E69F00", "#D55E00", "#009E73"
BLUE, PINK, OLIVE = "#0072B2", "#CC79A7", "#B8A100"

STAGE_COLOURS = {stage.name: stage.colour for stage in STAGES.values()}

PARTS = {
    "import": OLIVE,
    "backend": PINK,
    **{name: STAGE_COLOURS[name] for name in ("trace", "lower", "compile", "load")},
    "write": BLUE,
}
"""Of a process's time in a profile, in the order in which they happen."""

VERDICT_COLOURS = {
    "broken": PINK,
    "slower": VERMILLION,
    "faster": GREEN,
    "same": SKY,
    "unsure": ORANGE,
    "incomparable": GREY,
}

_TEXT = {
    **{"labelColor": "currentColor", "labelFontSize": 12},
    **{"titleColor": "currentColor", "titleFontSize": 12},
}

CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "titleFontWeight": "normal",
        "titleOpacity": 0.75,
        "domainColor": "currentColor",
        "domainOpacity": 0.3,
        "tickColor": "currentColor",
        "tickOpacity": 0.3,
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
    },
    "legend": {**_TEXT, "orient": "top", "columns": 8, "symbolType": "square"},
    "text": {"color": "currentColor"},
    "rule": {"color": "currentColor"},
}
"""The colour of text is the page's, so that dark, light and print need one drawing."""


MOST_ROWS = 20
"""Rows of a figure that has one per case; the table beside it has the others."""


def time_expression(value: str, digits: str = "") -> str:
    """Return an expression of Vega's for a time as text, in the unit that suits it: `1.23 ms`.

    `value` is an expression for seconds, `digits` how many significant ones: `.3`, "" for all.
    """
    short = f"replace(format({value}, '{digits}~s'), regexp('([a-zµ]?)$'), ' $1s')"
    return f"abs({value}) >= 1 ? format({value}, '{digits}~r') + ' s' : {short}"


SECONDS_LABEL = f"datum.label == '' ? '' : {time_expression('datum.value')}"
"""Of an axis of times: 100 ms, 3 µs. On a logarithmic one Vega leaves labels between powers of ten
empty, as many as there is no room for."""


def rows(table: str) -> Any:
    """Return a chart of the rows of a table."""
    return alt.Chart(alt.NamedData(table))


def top(
    table: str, by: str, row: str = "datum.workload + ' ' + datum.case", most: int = MOST_ROWS
) -> Any:
    """Return a chart of the rows of a table with the greatest sums of `by`.

    `by` and `row` are expressions of Vega's. Rows get the fields `row` and `rank`.
    """
    return (
        rows(table)
        .transform_calculate(row=row)
        .transform_calculate(by=by)
        .transform_joinaggregate(total="sum(by)", groupby=["row"])
        .transform_window(
            rank="dense_rank()",
            sort=[
                alt.SortField("total", order="descending"),
                alt.SortField("row", order="ascending"),
            ],
        )
        .transform_filter(f"datum.rank <= {most}")
    )


def by_case(
    sort: str = "rank",
    op: Literal["min", "max"] = "min",
    order: Literal["ascending", "descending"] = "ascending",
) -> Any:
    """Return the vertical channel of a chart with a row per case, sorted by a field."""
    return alt.Y(
        "row:N",
        title=None,
        sort=alt.EncodingSortField(sort, op=op, order=order),
        axis=row_names(),
    )


def row_names(grid: bool = False) -> Any:
    """Return the vertical axis of a chart with a row for each thing that has a name."""
    return alt.Axis(grid=grid, ticks=False, domain=False, labelPadding=6)


def ratios(
    table: str, cases: Any, y: Any, colour: Any, title: str, tooltip: list[Any], prefix: str = ""
) -> Any:
    """Return points of `ratio` with their intervals, on a logarithmic scale, a row per case.

    `cases` is a chart of rows of `table`; `prefix` stands before the names of the interval's ends.
    """
    low, high = f"{prefix}low", f"{prefix}high"
    x = alt.X("ratio:Q", scale=log_scale(), axis=axis("~g"), title=title)
    points = cases.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tooltip
    )
    spans = (
        cases.transform_filter(f"isValid(datum.{low})")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X(f"{low}:Q", scale=log_scale()), x2=f"{high}:Q", y=y, color=colour)
    )
    one = (
        rows(table)
        .transform_aggregate(rows="count()")
        .mark_rule(strokeDash=[4, 3], opacity=0.6, aria=False)
        .encode(x=alt.datum(1, type="quantitative"))
    )
    return (one + spans + points).properties(height=alt.Step(18))


def most(cases: Any, place: str, sort: list[Any]) -> Any:
    """Return a chart of the first rows by `sort`, whose place is the field `place`."""
    ranked = cases.transform_window(**{place: "row_number()"}, sort=sort)
    return ranked.transform_filter(f"datum.{place} <= {2 * MOST_ROWS}")


def seconds(field: str, title: str, log: bool = False, channel: str = "x") -> Any:
    """Return a channel of times."""
    return {"x": alt.X, "y": alt.Y}[channel](
        field,
        title=title,
        scale=log_scale() if log else alt.Scale(),
        axis=axis(labelExpr=SECONDS_LABEL),
    )


def axis(text: str = "", **options: Any) -> Any:
    """Return an axis with few labels and a line of the grid at each; `text` is a format of d3's."""
    options |= {"format": text} if text else {}
    lines = alt.condition("datum.label == ''", alt.value(0), alt.value(1))
    return alt.Axis(tickCount=5, labelOverlap=True, gridWidth=lines, **options)


def with_told(chart: Any, *fields: str) -> Any:
    """Return a chart with a field `told_FIELD` for each field of seconds: text for tooltips."""
    for field in fields:
        text = time_expression(f"datum.{field}", ".4")
        chart = chart.transform_calculate(f"told_{field}", text)
    return chart


def told(field: str, title: str = "time") -> Any:
    """Return what a tooltip of a chart from :func:`with_told` says of a field of seconds."""
    return alt.Tooltip(f"told_{field}:N", title=title)


def log_scale() -> Any:
    """Return a logarithmic scale that ends where the data does."""
    return alt.Scale(type="log", nice=False, padding=14)


def colours(field: str, palette: dict[str, str], shown: list[str]) -> Any:
    """Return a colour channel with a legend of what is shown."""
    return alt.Color(
        field,
        title=None,
        scale=alt.Scale(domain=shown, range=[palette.get(name, GREY) for name in shown]),
    )
