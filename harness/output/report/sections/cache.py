"""What the persistent cache saves: cold against warm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.cases import case_texts
from harness.frame.startup import cache_effectiveness
from harness.output.report import charts
from harness.output.report.cases import ADDED, axes_of, machine_picks
from harness.output.report.charts import GREEN, VERMILLION
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

_TIMES = {
    "first_call_cold_s": "first call, cold",
    "first_call_warm_s": "first call, warm",
    "compile_s": "compile, cold",
    "load_s": "load, warm",
    "start_cold_s": "start, cold",
    "start_warm_s": "start, warm",
    "saved_s": "saved",
}


def _content(measured: Measured) -> Content | None:
    newest = measured.newest
    data = cache_effectiveness(newest.drop(columns=list(ADDED)))
    if data.empty:
        return None
    axes = [axis for axis in axes_of(newest) if axis in data]
    data = data.assign(case=case_texts(data, axes))
    data["one_case"] = (data["workload"] + " " + data["case"]).str.strip()
    return Content((_figure(data),), (_table(data),))


def _figure(data: pd.DataFrame) -> Figure:
    cases = charts.top("cache", "datum.first_call_cold_s - datum.first_call_warm_s")
    line = cases.mark_rule(opacity=0.4, strokeWidth=2).encode(
        x=charts.seconds("first_call_warm_s:Q", "time of the first call"),
        x2="first_call_cold_s:Q",
        y=charts.by_case(),
    )
    points = (
        charts.with_told(
            cases.transform_fold(["first_call_cold_s", "first_call_warm_s"], ["of", "time"]), "time"
        )
        .transform_calculate(cache="datum.of == 'first_call_cold_s' ? 'cold' : 'warm'")
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            x=charts.seconds("time:Q", "time of the first call"),
            y=charts.by_case(),
            color=charts.colours("cache:N", {"cold": VERMILLION, "warm": GREEN}, ["cold", "warm"]),
            tooltip=["workload:N", "case:N", "cache:N", charts.told("time")],
        )
    )
    share = data["relative_warm"].median()
    return Figure(
        "cache",
        "First call, cold and warm: the cases that save most",
        f"With a filled cache the first call takes {100 * share:.0f} % of its cold time (the "
        f"median of {len(data)} {'case' if len(data) == 1 else 'cases'}).",
        (line + points).properties(height=alt.Step(24)),
        ("cache",),
        picks=machine_picks(data),
    )


def _table(data: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case"),
        *plain("target", "one_case", hidden=True),
        *plain("machine", hidden=data["machine"].nunique() < 2),
        *(Column(name, label, ColumnKind.SECONDS) for name, label in _TIMES.items()),
        Column("relative_warm", "warm / cold", ColumnKind.RATIO),
        Column("entry_bytes", "entry", ColumnKind.BYTES),
    )
    return Table("cache", "Cold against warm", columns, data)


SECTION = Section(
    name="cache",
    title="Cold against warm start",
    intro="The first call of a program with an empty persistent cache, and with one that another "
    "process has filled: tracing, lowering, compiling or loading, and running.",
    content=_content,
    missing="No case was measured with both an empty and a filled persistent cache.",
    command="harness run --scenario cold --scenario warm",
)
