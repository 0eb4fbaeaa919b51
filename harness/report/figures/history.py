"""The figure of a history: a panel per series, its points, and the change points marked."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import pandas as pd

from harness.frame.columns import COLUMNS as FRAME
from harness.records.units import ratio_text
from harness.report.charts import BLUE, GREEN, GREY, SKY, VERMILLION
from harness.verdicts.history.change_points import (
    ENVIRONMENT,
    FASTER,
    INCOMPARABLE,
    PROGRAM,
    SLOWER,
)
from harness.verdicts.history.points import SERIES
from harness.verdicts.history.texts import titles, when_of

BLACK = "#222222"

PANELS = 12
"""More series than this cannot be read in one figure."""

_COLOURS = {SLOWER: VERMILLION, FASTER: GREEN, ENVIRONMENT: SKY, PROGRAM: BLUE, INCOMPARABLE: GREY}


def chart(points: pd.DataFrame, found: pd.DataFrame) -> tuple[Any, int]:
    """Return an altair chart of the first :data:`PANELS` series, and how many there are in all.

    Series with change points come first, the newest first. Bars are the points' intervals, which do
    not contain what differs from night to night.

    Args:
        points: of :func:`harness.verdicts.history.series`.
        found: of :func:`harness.history` of the same frame.
    """
    shown = list(dict.fromkeys([*found["series"], *points["series"]]))
    panels = [
        _panel(points[points["series"] == one], found[found["series"] == one])
        for one in shown[:PANELS]
    ]
    return alt.vconcat(*panels).configure_title(anchor="start", fontSize=11), len(shown)


def _panel(points: pd.DataFrame, found: pd.DataFrame) -> Any:
    first = points.iloc[0]
    (name,) = titles(points.head(1), {*FRAME, *SERIES})
    title = f"{name} · {first['stage']}"
    data = pd.DataFrame(
        {
            "place": points["position"],
            "seconds": points["value"],
            "low": points["low"].fillna(points["value"]),
            "high": points["high"].fillna(points["value"]),
            "night": [when_of(row) for row in points.to_dict("records")],
            "commit": points["commit"].str[:8],
            "env": points["env"],
            "status": points["status"],
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
    base = alt.Chart(data.dropna(subset="seconds"), title=title)
    colour = alt.Color(
        "change:N",
        title=None,
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
    )
    lines = alt.Chart(marks).mark_rule(strokeWidth=2, strokeDash=[4, 3])
    texts = alt.Chart(marks).mark_text(align="left", dx=4, dy=-62)
    return (
        base.mark_rule(color=GREY).encode(x=x, y=y, y2="high:Q")
        + base.mark_point(filled=True, size=40, color=BLACK).encode(
            x=x, y=alt.Y("seconds:Q"), tooltip=["night:N", "commit:N", "env:N", "seconds:Q"]
        )
        + lines.encode(x=x, color=colour)
        + texts.encode(x=x, text="ratio:N", color=colour)
    ).properties(width=560, height=130)
