"""The figure of the start-up paths: for each path, where the time to the first result goes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from harness.cache.experiments.shipping import Report, median_step_s
from harness.errors import UsageError

PHASES = {
    "process": ("process", "import", "backend"),
    "program": ("program",),
    "trace + lower": ("trace", "lower"),
    "compile": ("compile",),
    "run": ("run",),
}
"""Parts of the bar, and the steps that each is made of."""

# Okabe and Ito's palette: told apart with any colour vision, and in print.
_COLOURS = ("#999999", "#56B4E9", "#E69F00", "#D55E00", "#009E73")


def check(output: Path) -> None:
    """Raise :class:`UsageError` if no figure could be drawn into `output`."""
    if output.suffix not in (".svg", ".png", ".html"):
        raise UsageError(f"--figure {output}: expected a name that ends in .svg, .png or .html.")
    for module, package in (("altair", "altair"), ("vl_convert", "vl-convert-python")):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"--figure needs {package}, which is not installed: pip install "
                "'jax-harness[figures]'."
            )


def chart(report: Report) -> Any:
    """Return an altair chart: a bar per path of median milliseconds, in phases, with bytes."""
    import altair as alt
    import pandas as pd

    rows = []
    for row in report.rows:
        if not row.counted:
            continue
        size = f"{row.shipped_bytes:,} bytes" if row.shipped_bytes else "nothing"
        for order, (phase, steps) in enumerate(PHASES.items()):
            ms = (median_step_s(row, *steps) or 0.0) * 1e3
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
                sort=list(PHASES),
                title=None,
                scale=alt.Scale(domain=list(PHASES), range=list(_COLOURS)),
            ),
            order=alt.Order("order:Q"),
            tooltip=["path:N", "phase:N", alt.Tooltip("ms:Q", format=".1f")],
        )
        .properties(width=520, height=alt.Step(28))
    )


def draw(report: Report, output: Path) -> None:
    """Write the figure into a `.svg`, `.png` or `.html` file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".html":
        chart(report).save(str(output), inline=True)
    else:
        chart(report).save(str(output), scale_factor=2 if output.suffix == ".png" else 1)
