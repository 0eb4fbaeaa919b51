"""The flame graph of one compile: what XLA did, each pass under what it is part of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import pandas as pd

from harness.program.compiler import groups
from harness.program.compiler.inside import Inside, PassBranch
from harness.report import charts
from harness.report.charts import BLUE, GREEN, GREY, OLIVE, ORANGE, PINK, SKY, VERMILLION

COLOURS = {
    groups.PASSES: SKY,
    groups.FUSION: GREEN,
    groups.LAYOUT: PINK,
    groups.SCHEDULING: OLIVE,
    groups.BUFFERS: "#88CCEE",
    groups.FOLDING: "#DDCC77",
    groups.AUTOTUNING: VERMILLION,
    groups.GENERATION: ORANGE,
    groups.SERIALISATION: BLUE,
    groups.REST: GREY,
}

LEAST = 0.0005
"""Of the compile's wall time: what takes less would be narrower than a pixel."""

WIDTH = 960
"""Pixels, where there is no page that decides."""

_ROW = 20


def chart(inside: Inside, label: str, width: int) -> Any:
    """Return an altair chart: a bar per pass and place, as wide as its share of the wall time.

    What is inside of a pass stands under it, the longest first; the bare rest is its own time. The
    wheel and a drag zoom.

    Args:
        inside: of a compile.
        label: what was compiled, for which target.
        width: in pixels; 0 for that of the page.
    """
    data = pd.DataFrame(_bars(inside.tree, 0.0, 0, LEAST * inside.wall_s))
    shown = [group for group in groups.GROUPS if group in set(data["group"])]
    data["share"] = data["wall"] / inside.wall_s
    base = charts.with_told(alt.Chart(data), "wall", "own", "threads").encode(
        y=alt.Y("level:Q", axis=None, scale=alt.Scale(reverse=True, zero=True, nice=False)),
        tooltip=[
            alt.Tooltip("name:N", title="pass"),
            "group:N",
            "count:Q",
            charts.told("wall", "wall, with what is inside"),
            charts.told("own", "wall, its own"),
            charts.told("threads", "of all threads"),
            alt.Tooltip("share:Q", format=".1%", title="of the compile"),
        ],
    )
    x = charts.seconds("begin:Q", "wall time of the compile")
    x = x.scale(domain=[0, inside.wall_s], nice=False)
    bars = base.mark_rect(stroke="white", strokeWidth=0.5, clip=True).encode(
        x=x, x2="end:Q", y2="below:Q", color=charts.colours("group:N", COLOURS, shown)
    )
    # Of a bar that begins left of what is shown, the name begins where the view does.
    left = "max(0, scale('x', datum.begin))"
    room = f"min(width, scale('x', datum.end)) - {left} - 8"
    names = base.mark_text(
        align="left",
        baseline="middle",
        color="#111",
        fontSize=11,
        dy=_ROW / 2,
        dx=4,
        x=alt.ExprRef(left),
        limit=alt.ExprRef(f"max(1, {room})"),
        opacity=alt.ExprRef(f"{room} > 24 ? 1 : 0"),
    ).encode(text="name:N")
    depth = int(data["level"].max()) + 1
    zoom = alt.selection_interval(bind="scales", encodings=["x"])
    return (
        alt.layer(bars.add_params(zoom), names)
        .properties(width=width or "container", height=depth * _ROW, title=label)
        .configure_title(anchor="start", fontSize=13)
        .configure_legend(orient="top", columns=3)
        .configure_axis(grid=False)
        .configure_view(stroke=None)
    )


def _bars(branch: PassBranch, begin: float, level: int, least: float) -> Iterator[dict[str, Any]]:
    """Yield a branch and what is inside of it, that takes `least` seconds."""
    yield {
        "name": branch.name,
        "group": branch.group,
        "count": branch.count,
        "begin": begin,
        "end": begin + branch.wall_s,
        "level": level,
        "below": level + 1,
        "wall": branch.wall_s,
        "own": branch.own_wall_s,
        "threads": branch.threads_s,
    }
    for one in branch.inside:
        if one.wall_s >= least:
            yield from _bars(one, begin, level + 1, least)
        begin += one.wall_s
