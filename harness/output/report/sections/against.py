"""XLA against the baselines: ratios, and both sides under the roofline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from harness.baselines.registry import REFERENCE, SIDES
from harness.frame.frame import rows_of
from harness.output.against import LEGEND, cases, places
from harness.output.report import charts
from harness.output.report.charts import GREEN, GREY, VERMILLION
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain

if TYPE_CHECKING:
    from harness.output.report.measured import Measured


def _content(measured: Measured) -> Content | None:
    if measured.comparisons.empty:
        return None
    data = _ratios(measured.comparisons)
    points, roofs = roofline(data)
    figures = [_ratio_figure(data)] if data["ratio"].notna().any() else []
    tables = [_table(data)]
    if not points.empty:
        figures.append(_roofline_figure(points))
        tables += _roofline_tables(points, roofs)
    return Content(tuple(figures), tuple(tables), shown=("against",), notes=LEGEND[:2])


def _ratios(comparisons: pd.DataFrame) -> pd.DataFrame:
    texts = pd.Series(places(comparisons), comparisons.index, dtype="str")
    if comparisons["machine"].nunique() > 1:
        texts += ", on " + comparisons["machine"]
    reasons = comparisons["reasons"].where(comparisons["reasons"] != "", comparisons["labels"])
    return comparisons.assign(
        case=texts,
        one_case=_names(comparisons),
        verdict=comparisons["verdict"].str.partition(":")[0],
        reasons=reasons,
    )


def _names(comparisons: pd.DataFrame) -> pd.Series[str]:
    texts = pd.Series(cases(comparisons), comparisons.index, dtype="str")
    return (comparisons["workload"] + " " + texts).str.strip()


def _ratio_figure(data: pd.DataFrame) -> Figure:
    rows = charts.most(
        charts.rows("against")
        .transform_filter("isValid(datum.ratio)")
        .transform_calculate(row="datum.workload + ' ' + datum.case", away="abs(log(datum.ratio))"),
        "rank",
        [alt.SortField("away", order="descending")],
    )
    drawn = ratio_chart(rows, charts.by_case("ratio", op="max", order="descending"))
    counts = data["verdict"].value_counts()
    won = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items())
    return Figure(
        "ratios",
        "Ratio of the times, with its 95 % interval",
        f"Of {len(data)} comparisons, {won}. Drawn are those farthest from 1.",
        drawn,
        ("against",),
        picks=(("baseline", "baseline", data["baseline"].iloc[0]),),
    )


def _roofline_figure(points: pd.DataFrame) -> Figure:
    xla = points[points["by"] == REFERENCE]["fraction"].median()
    return Figure(
        "roofline",
        "Under the ceilings that the same sweep measured",
        f"{len(points)} points; XLA reaches {100 * xla:.0f} % of the roofline (the median). What "
        "stands above a line found its data in a cache.",
        roofline_chart(points),
        ("roofline", "roofs"),
    )


def _table(data: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case"),
        *plain("target", "machine", "one_case", hidden=True),
        *plain("baseline", "verdict"),
        Column("ratio", "ratio", ColumnKind.RATIO),
        Column("ratio_low", "low", ColumnKind.RATIO),
        Column("ratio_high", "high", ColumnKind.RATIO),
        Column("xla_s", "XLA", ColumnKind.SECONDS),
        Column("baseline_s", "baseline's", ColumnKind.SECONDS),
        Column("xla_launches", "launches, XLA", ColumnKind.COUNT),
        Column("baseline_launches", "launches, baseline", ColumnKind.COUNT),
        Column("xla_fraction", "roofline, XLA", ColumnKind.SHARE),
        Column("baseline_fraction", "roofline, baseline", ColumnKind.SHARE),
        Column("n_xla", "processes", ColumnKind.COUNT),
        Column("reasons", "notes"),
    )
    return Table("against", "XLA beside each baseline", columns, data)


def _roofline_tables(points: pd.DataFrame, roofs: pd.DataFrame) -> list[Table]:
    columns = (
        *plain("workload", "case"),
        *plain("target", "machine", "one_case", hidden=True),
        *plain("by"),
        Column("intensity", "flop / byte", ColumnKind.NUMBER),
        Column("rate", "flop/s", ColumnKind.NUMBER),
        Column("fraction", "of the roofline", ColumnKind.SHARE),
    )
    corner = tuple(Column(name, name, ColumnKind.NUMBER) for name in ("roof", "intensity", "rate"))
    return [
        Table("roofline", "Operations per byte and per second", columns, points),
        Table("roofs", "Ceilings", corner, roofs),
    ]


VERDICT_COLOURS = {"XLA faster": GREEN, "baseline faster": VERMILLION, "unsure": GREY}


def chart(frame: pd.DataFrame) -> Any:
    """Return an altair chart of :func:`harness.against_baseline`'s frame, with its data.

    Above, the ratio of each row that has one, on a logarithmic scale with its interval; below,
    operations per byte and operations per second of both sides where they are known, under the
    ceilings of the sweep.
    """
    data = frame.assign(
        case=cases(frame), row=_names(frame) + " · " + frame["threads"] + " · " + frame["baseline"]
    )
    y = alt.Y("row:N", sort=None, title=None)
    parts = [ratio_chart(charts.rows("against"), y).properties(width=520)]
    points, roofs = roofline(data)
    if len(points):
        parts.append(roofline_chart(points).properties(width=520))
    drawn = alt.vconcat(*parts).resolve_scale(color="independent", shape="independent")
    kept = ["row", "workload", "case", "baseline", "verdict", "ratio", "ratio_low", "ratio_high"]
    measured = data.loc[data["ratio"].notna(), kept]
    tables = {"against": measured, "roofline": points, "roofs": roofs}
    drawn.datasets = {
        name: rows_of(table.astype(object).where(table.notna(), None))
        for name, table in tables.items()
    }
    return drawn.configure_axis(labelLimit=480)


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
            "workload:N",
            "case:N",
            "baseline:N",
            "verdict:N",
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
                "workload:N",
                "case:N",
                "by:N",
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


SECTION = Section(
    name="against",
    title="XLA against NumPy and CuPy",
    intro="The same computation by XLA and by a baseline, checked against float64 and timed by one "
    "rule. Losses stand beside wins.",
    content=_content,
    missing="Nothing was compared with a baseline.",
    command="harness run --with-baselines",
)
