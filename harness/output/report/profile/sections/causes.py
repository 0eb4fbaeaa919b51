"""Why functions were built again, and what a remedy would save."""

from __future__ import annotations

import altair as alt
import pandas as pd

from harness.output.profile_findings import finding_texts
from harness.output.report import charts
from harness.output.report.charts import GREY, ORANGE, VERMILLION
from harness.output.report.content import Content, Figure, Section
from harness.output.report.profile import tables
from harness.output.report.profile.tables import Shown
from harness.profiles.causes.kinds import BLAMELESS
from harness.records.units import counted, seconds_text

MOST_FINDINGS = 5
"""What the top of the page names."""

UNEXPLAINED = "unexplained"
OUTSIDE = "outside jit"


def content(causes: pd.DataFrame) -> Content:
    """Return the figure and the table; `causes` is the profile's table."""
    if causes.empty:
        return Content(notes=("Nothing was built.",))
    again = ~causes["cause"].isin([*BLAMELESS, UNEXPLAINED])
    mended = again & causes["remedy_id"].ne("")
    causes = causes.assign(saves_s=causes["build_s"].where(mended), again=again)
    causes = causes.sort_values("build_s", ascending=False, kind="stable")
    front = ("cause", "function", "saves_s", "sentence", "remedy", "builds", "build_s", "argument")
    table = tables.table(
        "causes",
        "Causes by function and argument, the slowest first",
        causes.drop(columns="again"),
        front,
    )
    notes = (
        "“saves” is what these builds took: what is spared if they are not done again. It is no "
        "promise: a remedy may make other calls slower.",
    )
    return Content((_figure(causes),), (table,), shown=("causes",), notes=notes)


def _figure(causes: pd.DataFrame) -> Figure:
    chart = (
        charts.rows("causes")
        .transform_calculate(
            what=f"datum.origin == 'jax' ? '{OUTSIDE}' : "
            f"datum.cause == '{UNEXPLAINED}' ? '{UNEXPLAINED}' : "
            f"indexof({list(BLAMELESS)}, datum.cause) >= 0 ? 'once' : 'again'"
        )
        .transform_aggregate(
            seconds="sum(build_s)", builds="sum(builds)", groupby=["cause", "what"]
        )
        .mark_bar(height={"band": 0.7})
        .encode(
            x=charts.seconds("seconds:Q", "tracing, lowering, compiling, loading"),
            y=alt.Y("cause:N", title=None, sort="-x", axis=charts.row_names()),
            color=charts.colours(
                "what:N",
                {"again": VERMILLION, "once": "#0072B2", OUTSIDE: ORANGE, "unexplained": GREY},
                ["again", "once", OUTSIDE, "unexplained"],
            ),
            tooltip=["cause:N", "what:N", alt.Tooltip("seconds:Q", format=".3s"), "builds:Q"],
        )
        .properties(height=alt.Step(24))
    )
    # As in the summary, where JAX's own functions are told of by themselves.
    outside = causes["origin"] == "jax"
    title = f"{seconds_text(causes['build_s'].where(causes['again'] & ~outside).sum())} of "
    title += f"{seconds_text(causes['build_s'].sum())} went into building again"
    if outside.any():
        seconds = seconds_text(causes["build_s"].where(outside).sum())
        title += f", {seconds} into JAX's functions outside jit"
    sums = causes.groupby("cause")["build_s"].sum().sort_values(ascending=False)
    parts = ", ".join(f"{cause} {seconds_text(seconds)}" for cause, seconds in sums.items())
    return Figure("causes", title, f"{parts}.", chart, ("causes",))


def _dearest(shown: Shown) -> tuple[str, ...]:
    texts = finding_texts(shown.profile)
    lines = [
        f"{seconds_text(one.seconds)}: {one.text}{', ' if one.place else ''}{one.place}. "
        f"{one.remedy}".rstrip()
        for one in texts[:MOST_FINDINGS]
    ]
    if rest := texts[MOST_FINDINGS:]:
        seconds = seconds_text(sum(one.seconds for one in rest))
        lines.append(f"{seconds} in {counted(len(rest), 'other finding')}.")
    return tuple(lines) or ("Nothing stands out.",)


SECTION = Section(
    name="causes",
    title="Causes",
    intro="Each build after a function's first was compared with the build of the same function "
    "that comes nearest. One that no difference explains is called unexplained, never guessed at.",
    content=lambda shown: content(shown.frame("causes")),
    answer=(1, "What costs most", _dearest),
)
