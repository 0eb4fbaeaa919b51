"""How each stage grows with an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.frame.tables import case_text
from harness.report import charts
from harness.report.content import NUMBER, SECONDS, Column, Figure, Part, Table
from harness.report.rows import axes_of, machine_picks

if TYPE_CHECKING:
    import pandas as pd

LEAST_POINTS = 3
"""Values of an axis without which there is no curve."""

COMMAND = "harness run SELECT"


def section(newest: pd.DataFrame) -> Part:
    """Return the section; `newest` is of :func:`harness.report.rows.newest`."""
    about: dict[str, Any] = {
        "name": "scaling",
        "title": "How it grows",
        "intro": "Time of each stage against one axis of a sweep, both on logarithmic scales: a "
        "straight line is a power of the axis. A line joins cases that differ in nothing else.",
    }
    data = curves(newest[newest["status"] == "ok"])
    if data.empty:
        return Part(
            **about,
            missing=f"No workload sweeps an axis over {LEAST_POINTS} or more positive numbers. "
            "Give one such values in its `sweep`, and measure it.",
            command=COMMAND,
        )
    return Part(**about, figures=(_figure(data),), tables=(_table(data),))


def curves(ok: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point: `axis` (workload · axis), `x`, `rest`, `stage`, `value`, ..."""
    import pandas as pd

    axes = axes_of(ok)
    parts = []
    for workload, rows in ok.groupby("workload", sort=True):
        own = [axis for axis in axes if rows[axis].notna().any()]
        for axis in own:
            part = rows[rows[axis].map(_is_positive)]
            if part[axis].nunique() < LEAST_POINTS:
                continue
            others = [name for name in own if name != axis]
            points = part.assign(axis=f"{workload} · {axis}", x=part[axis].astype(float))
            parts.append(points.assign(rest=_rests(part, others)))
    return pd.concat(parts, ignore_index=True) if parts else ok.iloc[:0]


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _rests(rows: pd.DataFrame, axes: list[str]) -> list[str]:
    names = [*("transform", "target", "precision", "scenario", "machine"), *axes]
    several = rows["machine"].nunique() > 1
    texts = []
    for transform, target, precision, scenario, machine, *values in zip(
        *(rows[name] for name in names), strict=True
    ):
        text = case_text(dict(zip(axes, values, strict=True)), transform, target, precision)
        shown = f"scenario={scenario}" if scenario not in ("", "off") else ""
        texts.append(", ".join(filter(None, [text, shown, f"on {machine}" if several else ""])))
    return texts


def _figure(data: pd.DataFrame) -> Figure:
    import altair as alt

    base = charts.with_told(charts.rows("scaling"), "value").encode(
        x=alt.X("x:Q", title="value of the axis", scale=charts.log_scale(), axis=charts.axis("~s")),
        y=charts.seconds("value:Q", "time", log=True, channel="y"),
        color=charts.colours("stage:N", charts.STAGE_COLOURS, _stages(data)),
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


def _stages(data: pd.DataFrame) -> list[str]:
    present = set(data["stage"])
    return [stage for stage in charts.STAGE_COLOURS if stage in present]


def _table(data: pd.DataFrame) -> Table:
    columns = (
        Column("axis", "workload and axis"),
        Column("x", "value of the axis", NUMBER),
        Column("rest", "other axes"),
        Column("stage", "stage"),
        Column("value", "time", SECONDS),
        *(Column(name, name, hidden=True) for name in ("workload", "target", "machine")),
    )
    return Table("scaling", "Time of each stage against an axis", columns, data)
