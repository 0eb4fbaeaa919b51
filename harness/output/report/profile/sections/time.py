"""Where the wall time of each process went."""

from __future__ import annotations

import itertools
import json

import altair as alt
import pandas as pd

from harness.output.profile import summary
from harness.output.report import charts
from harness.output.report.content import Content, Figure, Section
from harness.output.report.profile import tables
from harness.output.report.profile.tables import Shown
from harness.records.units import seconds_text, share_text

MOST_PROCESSES = 12
"""Processes that the figure shows: those that took longest."""

RUN = "all together"
"""The row of the run, beside those of its processes."""

COLOURS = {
    "python": "#C9B79C",
    **charts.PARTS,
    "other": "#8C6D31",
    "profile": "#6A51A3",
    "jax": "#4C78A8",
    "library": "#17A2A2",
    "program": "#7A9E3F",
    "end": "#B9A3C6",
    "unattributed": "#BBBBBB",
}


def _content(shown: Shown) -> Content:
    time = shown.frame("time")
    if time.empty:
        return Content(notes=("No process was recorded.",))
    time = time[time["seconds"] > 0].assign(
        process=time["process"].where(time["scope"] != "run", RUN)
    )
    if time["process"].nunique() == 2:
        time = time[time["scope"] == "run"]
    time = time.drop(columns="scope").reset_index(drop=True)
    exact = (time["low"] == time["high"]).all()
    drawn = time.drop(columns=["low", "high"]) if exact else time
    front = ("process", "part", "seconds", "share", "low", "high")
    table = tables.table("time", "Parts of the wall time", drawn, front)
    return Content(figures=(_figure(time),), tables=(table,))


def _figure(time: pd.DataFrame) -> Figure:
    parts = list(dict.fromkeys(time["part"]))
    order = [part for part in COLOURS if part in parts]
    order += [part for part in parts if part not in order]
    chart = (
        charts.top("time", "datum.seconds", "datum.process", MOST_PROCESSES)
        .transform_calculate(order=f"indexof({json.dumps(order)}, datum.part)")
        .mark_bar(height={"band": 0.7})
        .encode(
            x=charts.seconds("seconds:Q", "wall time"),
            y=charts.by_case(),
            color=charts.colours("part:N", COLOURS, order),
            order="order:Q",
            tooltip=[
                "process:N",
                "part:N",
                "meaning:N",
                alt.Tooltip("seconds:Q", format=".3s"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(height=alt.Step(40))
    )
    whole = time[time["process"] == RUN].sort_values("seconds", ascending=False)
    if whole.empty:
        whole = time.sort_values("seconds", ascending=False)
    total = whole["seconds"].sum()
    caption = ", ".join(
        f"{part} {seconds_text(seconds)} ({share_text(seconds, total)})"
        for part, seconds in zip(whole["part"], whole["seconds"], strict=True)
    )
    return Figure("time", f"{seconds_text(total)} of wall time", f"{caption}.", chart, ("time",))


def _in_short(shown: Shown) -> tuple[str, ...]:
    """Return what the terminal's summary says before and after its findings."""
    lines = summary(shown.profile, 10_000, None)
    blank = [place for place, line in enumerate(lines) if not line.strip()]
    kept = [*lines[: blank[0]], *lines[blank[-1] + 1 :]] if blank else lines
    return tuple(itertools.takewhile(lambda line: not line.startswith("Next:"), kept))


SECTION = Section(
    name="time",
    title="Where the time went",
    intro="The parts of the wall time; they add up to it. Where threads or processes build at "
    "once, each has its share of that moment. What nothing recorded explains is called "
    "unattributed.",
    content=_content,
    answer=(0, "In short", _in_short),
)
