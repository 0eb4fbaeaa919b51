"""The figure of a comparison: the ratio of every case, and both sides under the roofline."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from harness.frame.against_tables import cases
from harness.frame.frame import rows_of
from harness.report.palette import GREEN, GREY, VERMILLION
from harness.sides.registry import REFERENCE, SIDES

VERDICT_COLOURS = {"XLA faster": GREEN, "baseline faster": VERMILLION, "unsure": GREY}


def chart(frame: pd.DataFrame) -> Any:
    """Return an altair chart of :func:`harness.against_baseline`'s frame.

    Above, the ratio of each row that has one, on a logarithmic scale with its interval; below,
    operations per byte and operations per second of both sides where they are known, under the
    ceilings of the sweep.
    """
    frame = frame.assign(case=pd.Series(cases(frame), frame.index, dtype="str"))
    parts = [_ratios(frame), _roofline_chart(frame)]
    return alt.vconcat(*(part for part in parts if part is not None)).resolve_scale(
        color="independent"
    )


def _ratios(frame: pd.DataFrame) -> Any:
    names = (frame["workload"] + " " + frame["case"]).str.strip()
    rows = frame[["ratio", "verdict"]].assign(
        row=names + " · " + frame["threads"] + " · " + frame["baseline"],
        low=frame["ratio_low"].fillna(frame["ratio"]),
        high=frame["ratio_high"].fillna(frame["ratio"]),
    )
    base = alt.Chart(
        rows.dropna(subset="ratio"),
        title="Time of the baseline / time of XLA: right of the line, XLA is faster",
    )
    colour = alt.Color(
        "verdict:N",
        title=None,
        scale=alt.Scale(domain=list(VERDICT_COLOURS), range=list(VERDICT_COLOURS.values())),
    )
    y = alt.Y("row:N", sort=None, title=None, axis=alt.Axis(labelLimit=480))
    scale = alt.Scale(type="log")
    x = alt.X("low:Q", scale=scale, title="ratio, 95 % interval")
    line = alt.Chart(pd.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(x="one:Q")
    return (
        line
        + base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q", y=y, color=colour)
        + base.mark_point(filled=True, size=60).encode(
            x=alt.X("ratio:Q", scale=scale),
            y=y,
            color=colour,
            tooltip=["row:N", "verdict:N", *(alt.Tooltip(f"{n}:Q", format=".3g") for n in _SHOWN)],
        )
    ).properties(width=520, height=alt.Step(18))


_SHOWN = ("ratio", "low", "high")


def _roofline_chart(frame: pd.DataFrame) -> Any:
    """Return the scatter under the ceilings, or None where no row can be placed in it."""
    points, lines = roofline(frame)
    if points.empty:
        return None
    x = alt.X("intensity:Q", scale=alt.Scale(type="log"), title="flop / least byte")
    y = alt.Y("rate:Q", scale=alt.Scale(type="log"), title="flop/s", axis=alt.Axis(format="~s"))
    shown = [name for name in SIDES if name in set(points["by"])]
    roof = (
        alt.Chart(lines, title="Under the ceilings that the same sweep measured")
        .mark_line(color=GREY)
        .encode(x=x, y=y, detail="roof:N")
    )
    scatter = (
        alt.Chart(points)
        .mark_point(filled=True, size=60)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "by:N",
                title=None,
                scale=alt.Scale(domain=shown, range=[SIDES[name].colour for name in shown]),
            ),
            tooltip=["workload:N", "case:N", "by:N", alt.Tooltip("rate:Q", format=".3s")],
        )
    )
    return (roof + scatter).properties(width=520, height=300)


def roofline(data: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row per side of a case that can be placed under the ceilings, and their corners.

    `data` is of :func:`harness.against_baseline`, with a column `case` of text.
    """
    points: list[dict[str, Any]] = []
    roofs: dict[tuple[float, float], list[float]] = {}
    for row in rows_of(data):
        intensity = row["flops"] / row["least_bytes"] if row["least_bytes"] else math.nan
        if not intensity > 0 or row["verdict"].startswith("no ratio"):
            continue
        for side, name in (("xla", REFERENCE), ("baseline", row["baseline"])):
            if not math.isnan(row[f"{side}_fraction"]):
                rate = row["flops"] / row[f"{side}_s"]
                about = {key: row[key] for key in ("workload", "case", "target", "machine")}
                about |= {"by": name, "intensity": intensity, "rate": rate}
                points.append(about | {"fraction": row[f"{side}_fraction"]})
                roof = (row["ceiling_bandwidth"], row["ceiling_flop_rate"])
                roofs.setdefault(roof, []).append(intensity)
    every = [at for places in roofs.values() for at in places]
    lines = [
        {"roof": float(number), "intensity": at, "rate": rate}
        for number, roof in enumerate(roofs)
        for at, rate in _corners(*roof, min(every), max(every))
    ]
    return pd.DataFrame(points).drop_duplicates(), pd.DataFrame(lines)


def _corners(
    bandwidth: float, flop_rate: float, least: float, most: float
) -> list[tuple[float, float]]:
    """Return the corners of a roofline, (flop/byte, flop/s), around a range of intensities."""
    rate = math.inf if math.isnan(flop_rate) else flop_rate
    low, ridge, high = least / 4, rate / bandwidth, most * 4
    places = [low, *([ridge] if low < ridge < high else []), high]
    return [(at, min(at * bandwidth, rate)) for at in places]
