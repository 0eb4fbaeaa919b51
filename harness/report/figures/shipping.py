"""The figure of the start-up paths: for each path, where the time to the first result goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from harness.report.charts import GREEN, GREY, ORANGE, SKY, VERMILLION
from harness.report.files import save_figure
from harness.ship.routes import RoutesReport

PHASES = {
    "process": ("process", "import", "backend"),
    "program": ("program",),
    "trace + lower": ("trace", "lower"),
    "compile": ("compile",),
    "run": ("run",),
    "until the step": ("before",),
    "step": ("step",),
}
"""Parts of the bar, and the steps that each is made of: of a declared case, and of a program."""

_COLOURS = (GREY, SKY, ORANGE, VERMILLION, GREEN, GREY, VERMILLION)


def chart(report: RoutesReport) -> Any:
    """Return an altair chart: a bar per path of median milliseconds, in phases, with bytes."""
    taken = {step for row in report.rows for one in row.counted for step in one.steps_s}
    phases = {name: steps for name, steps in PHASES.items() if taken.intersection(steps)}
    colours = [one for one, name in zip(_COLOURS, PHASES, strict=True) if name in phases]
    rows = []
    for row in report.rows:
        if not row.counted:
            continue
        size = f"{row.shipped_bytes:,} bytes" if row.shipped_bytes else "nothing"
        for order, (phase, steps) in enumerate(phases.items()):
            ms = (row.median_s(*steps) or 0.0) * 1e3
            path = f"{row.path} ({size} shipped)"
            rows.append({"path": path, "phase": phase, "order": order, "ms": ms})
    title = f"{report.workload} {report.case}".rstrip()
    return (
        alt.Chart(pd.DataFrame(rows), title=f"{title}: time to the first result")
        .mark_bar()
        .encode(
            x=alt.X("sum(ms):Q", title=f"ms, median of {report.processes} processes per step"),
            y=alt.Y("path:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
            color=alt.Color(
                "phase:N",
                sort=list(phases),
                title=None,
                scale=alt.Scale(domain=list(phases), range=colours),
            ),
            order=alt.Order("order:Q"),
            tooltip=["path:N", "phase:N", alt.Tooltip("ms:Q", format=".1f")],
        )
        .properties(width=520, height=alt.Step(28))
    )


def draw(report: RoutesReport, output: Path) -> None:
    """Write the figure into a `.svg`, `.png` or `.html` file."""
    save_figure(chart(report), output)
