"""The figures of comparisons: the ratio of every case, and both sides under the roofline."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from harness.frame.against_tables import cases
from harness.frame.frame import rows_of
from harness.report import charts
from harness.report.charts import GREEN, GREY, VERMILLION
from harness.sides.registry import REFERENCE, SIDES

VERDICT_COLOURS = {"XLA faster": GREEN, "baseline faster": VERMILLION, "unsure": GREY}

_LABEL_PIXELS = 480


def chart(frame: pd.DataFrame) -> Any:
    """Return an altair chart of :func:`harness.against_baseline`'s frame, with its data.

    Above, the ratio of each row that has one, on a logarithmic scale with its interval; below,
    operations per byte and operations per second of both sides where they are known, under the
    ceilings of the sweep.
    """
    data = frame.assign(case=pd.Series(cases(frame), frame.index, dtype="str"))
    names = (data["workload"] + " " + data["case"]).str.strip()
    data = data.assign(row=names + " · " + data["threads"] + " · " + data["baseline"])
    y = alt.Y("row:N", sort=None, title=None)
    parts = [ratio_chart(charts.rows("against"), y).properties(width=520)]
    points, roofs = roofline(data)
    if len(points):
        parts.append(roofline_chart(points).properties(width=520))
    drawn = alt.vconcat(*parts).resolve_scale(color="independent", shape="independent")
    kept = ["row", "workload", "case", "baseline", "verdict", "ratio", "ratio_low", "ratio_high"]
    known = data.loc[data["ratio"].notna(), kept]
    tables = {"against": known, "roofline": points, "roofs": roofs}
    drawn.datasets = {
        name: rows_of(table.astype(object).where(table.notna(), None))
        for name, table in tables.items()
    }
    return drawn.configure_axis(labelLimit=_LABEL_PIXELS)


def ratio_chart(rows: Any, y: Any) -> Any:
    """Return the ratios of rows of the table `against`, with their intervals."""
    numbers = ("ratio", "ratio_low", "ratio_high")
    return charts.ratios(
        "against",
        rows,
        y,
        charts.colours("verdict:N", VERDICT_COLOURS, list(VERDICT_COLOURS)),
        "time of the baseline / time of XLA: right of 1, XLA is faster",
        [
            *("workload:N", "case:N", "baseline:N", "verdict:N"),
            *(alt.Tooltip(f"{name}:Q", format=".3g") for name in numbers),
        ],
        prefix="ratio_",
    )


def roofline_chart(points: pd.DataFrame) -> Any:
    """Return the sides of the table `roofline` under the ceilings of the table `roofs`."""
    log = charts.log_scale()
    x = alt.X("intensity:Q", scale=log, axis=charts.axis("~g"), title="flop / least byte")
    y = alt.Y("rate:Q", scale=log, axis=charts.axis("~s"), title="flop/s")
    roof = charts.rows("roofs").mark_line(opacity=0.5, color=GREY).encode(x=x, y=y, detail="roof:N")
    colours = {name: side.colour for name, side in SIDES.items()}
    sides = [side for side in colours if side in set(points["by"])]
    scatter = (
        charts.rows("roofline")
        .mark_point(filled=True, size=60)
        .encode(
            x=x,
            y=y,
            color=charts.colours("by:N", colours, sides),
            shape=alt.Shape("by:N", title=None, scale=alt.Scale(domain=sides)),
            tooltip=[
                *("workload:N", "case:N", "by:N"),
                alt.Tooltip("rate:Q", title="flop/s", format=".3s"),
                alt.Tooltip("fraction:Q", title="of the roofline", format=".0%"),
            ],
        )
    )
    return (roof + scatter).properties(height=340)


_ABOUT = ("workload", "case", "one_case", "target", "machine")


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
                about = {name: row[name] for name in _ABOUT if name in row}
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
