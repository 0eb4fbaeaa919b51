"""The figure of a comparison, a card of one screen: the answer, and the rows that need a look."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from harness.frame.frame import rows_of
from harness.report import charts
from harness.report.charts import VERDICT_COLOURS
from harness.verdicts import summary
from harness.verdicts.compare import Comparison

ROWS = 15
"""What fits on a screen."""


def chart(comparison: Comparison) -> Any:
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
