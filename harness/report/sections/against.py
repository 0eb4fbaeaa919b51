"""XLA against the baselines: ratios, and both sides under the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.against_tables import cases, places
from harness.report import charts
from harness.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.report.figures.against import ratio_chart, roofline, roofline_chart
from harness.sides.registry import REFERENCE

if TYPE_CHECKING:
    from harness.report.measured import Measured

NOTES = (
    "ratio: time of the baseline / time of XLA, with its 95 % interval; above 1 XLA is faster.",
    "launches: kernels, or array operations. roofline: the share reached of what the machine can "
    "do at best, by the bandwidth and the arithmetic measured in the same sweep.",
)


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
    return Content(tuple(figures), tuple(tables), shown=("against",), notes=NOTES)


def _ratios(comparisons: pd.DataFrame) -> pd.DataFrame:
    several = comparisons["machine"].nunique() > 1
    texts = [
        f"{place}, on {machine}" if several else place
        for place, machine in zip(places(comparisons), comparisons["machine"], strict=True)
    ]
    one = [
        " ".join(filter(None, pair))
        for pair in zip(comparisons["workload"], cases(comparisons), strict=True)
    ]
    reasons = comparisons["reasons"].where(comparisons["reasons"] != "", comparisons["labels"])
    return comparisons.assign(
        case=texts,
        one_case=one,
        verdict=comparisons["verdict"].str.partition(":")[0],
        reasons=reasons,
    )


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


SECTION = Section(
    name="against",
    title="XLA against NumPy and CuPy",
    intro="The same computation by XLA and by a baseline, checked against float64 and timed by one "
    "rule. Losses stand beside wins.",
    content=_content,
    missing="Nothing was compared with a baseline.",
    command="harness run --with-baselines",
)
