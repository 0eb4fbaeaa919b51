"""How each stage grows with an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from harness.frame.cases import CASE, keys
from harness.ir.power_law import fit
from harness.output.report import charts
from harness.output.report.cases import ADDED, axes_of, full_case_texts, machine_picks, stages_of
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

LEAST_POINTS = 3
"""Values of an axis without which there is no curve."""

GROWTH = [
    "workload", "axis", "stage", "exponent", "low", "high", "fit", "rest", "target", "machine",
]  # fmt: skip


def _content(measured: Measured) -> Content | None:
    data = _curves(measured.ok)
    if data.empty:
        return None
    return Content((_figure(data),), (_table(data), _growth(data)), shown=("growth",))


def _curves(ok: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point: `axis` (workload · axis), `x`, `rest`, `curve`, `stage`, `value`, ...

    Points of one axis and `curve` differ in its value only.
    """
    axes = axes_of(ok)
    parts = []
    for workload, rows in ok.groupby("workload", sort=True):
        own = [axis for axis in axes if rows[axis].notna().any()]
        for axis in own:
            part = rows[rows[axis].map(_is_positive)]
            if part[axis].nunique() < LEAST_POINTS:
                continue
            left_out = (*ADDED, *(name for name in axes if name == axis or name not in own))
            others = [name for name in own if name != axis]
            points = part.assign(
                axis=f"{workload} · {axis}",
                x=part[axis].astype(float),
                rest=full_case_texts(part, left_out),
                curve=keys(part, [*CASE, *others, "stage"]),
            )
            parts.append(points)
    return pd.concat(parts, ignore_index=True) if parts else ok.iloc[:0]


def _growth(curves: pd.DataFrame) -> Table:
    """Return the exponents of all curves, the largest first."""
    exponents = []
    for _, points in curves.groupby(["axis", "curve"], sort=False):
        fitted = fit(points["x"].tolist(), points["samples"].tolist())
        if fitted.get("n_values", 0) >= LEAST_POINTS:
            first = points.iloc[0]
            about = {name: first[name] for name in ("workload", "stage", "target", "machine")}
            axis = first["axis"].rpartition(" · ")[2]
            exponents.append({**about, **fitted, "axis": axis, "rest": first["rest"]})
    growth = pd.DataFrame(exponents, columns=GROWTH)
    growth = growth.sort_values("exponent", ascending=False, kind="stable", ignore_index=True)
    columns = (
        *plain("workload", "stage"),
        *(Column(name, name, ColumnKind.NUMBER, digits=3) for name in ("exponent", "low", "high")),
        *plain("axis", "fit"),
        Column("rest", "other axes"),
        *plain("target", "machine", hidden=True),
    )
    caption = "Time = constant × axis ^ exponent, with its 95 % interval: what grows fastest first"
    return Table("growth", caption, columns, growth)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _figure(data: pd.DataFrame) -> Figure:
    base = charts.with_told(charts.rows("scaling"), "value").encode(
        x=alt.X("x:Q", title="value of the axis", scale=charts.log_scale(), axis=charts.axis("~s")),
        y=charts.seconds("value:Q", "time", log=True, channel="y"),
        color=charts.colours("stage:N", charts.STAGE_COLOURS, stages_of(data)),
        detail="rest:N",
    )
    points = base.mark_point(filled=True, size=55).encode(
        tooltip=["stage:N", "x:Q", "rest:N", charts.told("value")]
    )
    count = data["axis"].nunique()
    return Figure(
        "scaling",
        "Time of each stage against an axis",
        f"{count} {'axis' if count == 1 else 'axes'} with {LEAST_POINTS} or more values; choose "
        "one below.",
        (base.mark_line(strokeWidth=1.5) + points).properties(height=320),
        ("scaling",),
        picks=(*machine_picks(data), ("axis", "workload and axis", data["axis"].iloc[0])),
    )


def _table(data: pd.DataFrame) -> Table:
    columns = (
        Column("axis", "workload and axis"),
        Column("x", "value of the axis", ColumnKind.NUMBER),
        Column("rest", "other axes"),
        *plain("stage"),
        Column("value", "time", ColumnKind.SECONDS),
        *plain("workload", "target", "machine", hidden=True),
    )
    return Table("scaling", "Time of each stage against an axis", columns, data)


SECTION = Section(
    name="scaling",
    title="How it grows",
    intro="Time of each stage against one axis of a sweep, both on logarithmic scales: a straight "
    "line is a power of the axis. A line joins cases that differ in nothing else.",
    content=_content,
    missing=f"No workload sweeps an axis over {LEAST_POINTS} or more positive numbers. Give one "
    "such values in its `sweep`, and measure it.",
    command="harness run SELECT",
)
