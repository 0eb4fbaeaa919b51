"""What all charts of the report have in common."""

from __future__ import annotations

from typing import Any

from harness.figures import GREEN, GREY, ORANGE, SKY, VERMILLION

MOST_ROWS = 20
"""Rows of a figure that has one per case; the table beside it has the others."""

STAGE_COLOURS = {
    "trace": SKY,
    "lower": ORANGE,
    "compile": VERMILLION,
    "load": GREEN,
    "dispatch": "#CC79A7",
    "execute": "#0072B2",
    "first_call": GREY,
    "start": "#B8A100",
}
"""Okabe and Ito's palette: told apart with any colour vision."""

VERDICT_COLOURS = {
    "slower": VERMILLION,
    "faster": GREEN,
    "same": SKY,
    "unsure": ORANGE,
    "incomparable": GREY,
}

SECONDS_LABEL = "format(datum.value, '~s') + 's'"
"""Of an axis of times: 100ms, 3µs."""

CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "titleOpacity": 0.75,
        "domainColor": "currentColor",
        "domainOpacity": 0.3,
        "tickColor": "currentColor",
        "tickOpacity": 0.3,
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "orient": "top",
        "columns": 8,
        "symbolType": "square",
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "text": {"color": "currentColor"},
    "rule": {"color": "currentColor"},
}
"""The colour of text is the page's, so that dark, light and print need one drawing."""


def rows(table: str) -> Any:
    """Return a chart of the rows of a table."""
    import altair as alt

    return alt.Chart(alt.NamedData(table))


def top(table: str, by: str) -> Any:
    """Return a chart of the :data:`MOST_ROWS` cases of a table with the greatest sum of `by`.

    `by` is an expression of Vega's. Rows get the fields `row`, workload and case, and `rank`.
    """
    import altair as alt

    return (
        rows(table)
        .transform_calculate(row="datum.workload + ' ' + datum.case")
        .transform_calculate(by=by)
        .transform_joinaggregate(total="sum(by)", groupby=["row"])
        .transform_window(
            rank="dense_rank()",
            sort=[
                alt.SortField("total", order="descending"),
                alt.SortField("row", order="ascending"),
            ],
        )
        .transform_filter(f"datum.rank <= {MOST_ROWS}")
    )


def by_case() -> Any:
    """Return the vertical channel of a chart from :func:`top`: a row per case, first rank first."""
    import altair as alt

    return alt.Y(
        "row:N",
        title=None,
        sort=alt.EncodingSortField("rank", op="min", order="ascending"),
        axis=alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6),
    )


def seconds(field: str, title: str, log: bool = False, channel: str = "x") -> Any:
    """Return a channel of times."""
    import altair as alt

    return {"x": alt.X, "y": alt.Y}[channel](
        field,
        title=title,
        scale=log_scale() if log else alt.Scale(),
        axis=alt.Axis(labelExpr=SECONDS_LABEL, tickCount=5, labelOverlap=True),
    )


def log_scale() -> Any:
    """Return a logarithmic scale that ends where the data does."""
    import altair as alt

    return alt.Scale(type="log", nice=False, padding=14)


def colours(field: str, palette: dict[str, str], shown: list[str]) -> Any:
    """Return a colour channel with a legend of what is shown."""
    import altair as alt

    return alt.Color(
        field,
        title=None,
        scale=alt.Scale(domain=shown, range=[palette.get(name, GREY) for name in shown]),
    )
