"""What was built: facts of the programs, which no noise disturbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.output.report import charts
from harness.output.report.cases import machine_picks
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.program.facts import FACTS, FIRST, TOTALS
from harness.stages.scenarios.registry import SCENARIOS

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

DRAWN = tuple(fact.name for fact in FIRST)
"""Facts that the figure offers."""


def _content(measured: Measured) -> Content | None:
    measured_rows = measured.newest.dropna(subset=list(TOTALS), how="all")
    if measured_rows.empty:
        return None
    rank = {name: place for place, name in enumerate(SCENARIOS)}
    measured_rows = measured_rows.sort_values(
        "scenario", key=lambda names: names.map(rank), kind="stable"
    )
    facts = measured_rows.groupby("case_number", sort=True)[list(TOTALS)].max()
    first = measured_rows.drop_duplicates("case_number").set_index("case_number")
    named = ["workload", "case", "one_case", "target", "machine", "scenario", "fingerprint"]
    # With a cache the same program is built, so each has one row.
    wide = first[named].join(facts).reset_index(drop=True)
    wide = wide[wide["scenario"].isin(["off", ""]) | ~wide["fingerprint"].duplicated()]
    wide = wide.sort_values(["workload"], kind="stable").reset_index(drop=True)
    return Content((_figure(wide),), (_long(wide), _wide(wide)), shown=("facts",))


def _figure(wide: pd.DataFrame) -> Figure:
    chart = (
        charts.top("fact_bars", "datum.count")
        .mark_bar(height={"band": 0.72}, color=charts.BLUE)
        .encode(
            x=alt.X(
                "count:Q",
                title="count, flop or bytes",
                axis=alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5),
            ),
            y=charts.by_case(),
            tooltip=["workload:N", "case:N", "fact:N", alt.Tooltip("count:Q", format=",")],
        )
        .properties(height=alt.Step(22))
    )
    launched = ""
    if wide["launches"].notna().any():
        most = wide.nlargest(1, "launches").iloc[0]
        name = f"{most['workload']} {most['case']}".strip()
        launched = f" Most launches: {name}, {most['launches']:.0f}."
    return Figure(
        "facts",
        "The cases with most of one fact",
        f"{wide['fingerprint'].nunique()} distinct programs in {len(wide)} cases.{launched}",
        chart,
        ("fact_bars",),
        picks=(*machine_picks(wide), ("fact", "fact", "launches")),
        most="count",
    )


def _long(wide: pd.DataFrame) -> Table:
    kept = ["workload", "case", "one_case", "target", "machine"]
    long = wide.melt(kept, list(DRAWN), var_name="fact", value_name="count")
    long = long[long["count"].notna()].reset_index(drop=True)
    columns = (
        *plain("workload", "case"),
        *plain("target", "machine", "one_case", hidden=True),
        *plain("fact"),
        Column("count", "count", ColumnKind.NUMBER),
    )
    return Table("fact_bars", "One fact of each case", columns, long)


def _wide(wide: pd.DataFrame) -> Table:
    facts = [name for name in TOTALS if wide[name].fillna(0).any()]
    columns = (
        *plain("workload", "case"),
        *plain("target", "machine", "one_case", hidden=True),
        *(
            Column(
                name,
                name.replace("_", " "),
                ColumnKind.BYTES if FACTS[name].unit == "bytes" else ColumnKind.COUNT,
            )
            for name in facts
        ),
    )
    return Table("facts", "Facts of each case's program", columns, wide)


SECTION = Section(
    name="facts",
    title="What XLA built",
    intro="Counts read off each program. They do not scatter: one that changed is a change of the "
    "program.",
    content=_content,
    missing="The records hold no facts of programs; asv's own files never do.",
    command="harness run",
)
