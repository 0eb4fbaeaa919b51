"""Figures of single commands: a comparison, a history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from harness.frame.columns import COLUMNS
from harness.frame.frame import rows_of
from harness.records.units import ratio_text
from harness.report import charts
from harness.report.charts import BLUE, GREEN, GREY, SKY, VERDICT_COLOURS, VERMILLION
from harness.verdicts import summary
from harness.verdicts.history import change_points, texts
from harness.verdicts.history.points import SERIES

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison

ROWS = 15
"""Of a comparison: what fits on a screen."""

PANELS = 12
"""Of a history: more series cannot be read in one figure."""

CHANGES = {
    change_points.SLOWER: VERMILLION,
    change_points.FASTER: GREEN,
    change_points.ENVIRONMENT: SKY,
    change_points.PROGRAM: BLUE,
    change_points.INCOMPARABLE: GREY,
}


def compared(comparison: Comparison) -> Any:
    """Return an altair chart with its data: the ratios that are listed, with their intervals.

    Its title is the answer; below it stands what was compared, and how much is not drawn. Where no
    row needs a look, others are drawn; at least one row has a ratio.
    """
    known = comparison.frame[comparison.frame["ratio"].notna()]
    rows, _ = summary.listed(known, every=False)
    drawn = (rows if len(rows) else summary.ordered(known)).head(ROWS)
    names = drawn["workload"] + " " + pd.Series(summary.cases(drawn), drawn.index, dtype="str")
    drawn = drawn.assign(row=names.str.strip() + " · " + drawn["stage"])
    left_out = len(comparison.frame) - len(drawn)
    said = [summary.heading(comparison)]
    said += [f"Not drawn: {left_out} other rows."] if left_out else []
    title = alt.TitleParams(
        summary.summary_text(comparison.frame), subtitle=said, anchor="start", offset=12
    )
    given = [name for name in VERDICT_COLOURS if name in set(drawn["verdict"])]
    ratios = charts.ratios(
        "compare",
        charts.rows("compare"),
        alt.Y("row:N", sort=None, title=None, axis=alt.Axis(grid=False, ticks=False)),
        charts.colours("verdict:N", VERDICT_COLOURS, given),
        "B / A: right of 1, B takes longer",
        ["row:N", "verdict:N", alt.Tooltip("ratio:Q", format=".3f"), "reason:N"],
    )
    kept = drawn[["row", "verdict", "ratio", "low", "high", "reason"]].astype(object)
    ratios = ratios.properties(title=title, width=480)
    ratios.datasets = {"compare": rows_of(kept.where(kept.notna(), None))}
    return ratios.configure_axis(labelLimit=480)


def history(points: pd.DataFrame, found: pd.DataFrame) -> tuple[Any, int]:
    """Return an altair chart of the first :data:`PANELS` series, and how many there are in all.

    Series with change points come first, the newest first. Bars are the points' intervals, which do
    not contain what differs from night to night. `points` and `found` are of
    :func:`harness.verdicts.history.series` and :func:`harness.history` of the same frame.
    """
    shown = list(dict.fromkeys([*found["series"], *points["series"]]))
    panels = [
        _panel(points[points["series"] == one], found[found["series"] == one])
        for one in shown[:PANELS]
    ]
    return alt.vconcat(*panels).configure_title(anchor="start", fontSize=11), len(shown)


def _panel(points: pd.DataFrame, found: pd.DataFrame) -> Any:
    (name,) = texts.titles(points.head(1), {*COLUMNS, *SERIES})
    data = pd.DataFrame(
        {
            "place": points["position"],
            "seconds": points["value"],
            "low": points["low"].fillna(points["value"]),
            "high": points["high"].fillna(points["value"]),
            "night": [texts.when_of(row) for row in points.to_dict("records")],
            "commit": points["commit"].str[:8],
            "env": points["env"],
        }
    )
    marks = pd.DataFrame(
        {
            "place": found["position"] - 0.5,
            "change": found["change"],
            "ratio": [ratio_text(ratio) for ratio in found["ratio"]],
        }
    )
    labels = dict(zip(data["place"].astype(str), data["night"], strict=True))
    x = alt.X(
        "place:Q",
        title=None,
        scale=alt.Scale(domain=[-1, len(points)], nice=False),
        axis=alt.Axis(
            grid=False, tickMinStep=1, labelExpr=f"{json.dumps(labels)}[datum.value] || ''"
        ),
    )
    y = alt.Y("low:Q", title="seconds", scale=alt.Scale(zero=False), axis=alt.Axis(format="~s"))
    base = alt.Chart(data.dropna(subset="seconds"), title=f"{name} · {points['stage'].iloc[0]}")
    colour = charts.colours("change:N", CHANGES, list(CHANGES))
    lines = alt.Chart(marks).mark_rule(strokeWidth=2, strokeDash=[4, 3])
    beside = alt.Chart(marks).mark_text(align="left", dx=4, dy=-62)
    return (
        base.mark_rule(color=GREY).encode(x=x, y=y, y2="high:Q")
        + base.mark_point(filled=True, size=40, color="#222222").encode(
            x=x, y=alt.Y("seconds:Q"), tooltip=["night:N", "commit:N", "env:N", "seconds:Q"]
        )
        + lines.encode(x=x, color=colour)
        + beside.encode(x=x, text="ratio:N", color=colour)
    ).properties(width=560, height=130)
