"""What was built: facts of the programs, which no noise disturbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.program.facts import FACTS, FIRST, TOTALS
from harness.report import charts
from harness.report.content import BYTES, COUNT, NUMBER, Column, Figure, Part, Table
from harness.report.rows import machine_picks

if TYPE_CHECKING:
    import pandas as pd

DRAWN = tuple(fact.name for fact in FIRST)
"""Facts that the figure offers."""

_SCENARIOS = ("off", "default", "cold", "warm", "")


def section(newest: pd.DataFrame) -> Part:
    """Return the section; `newest` is of :func:`harness.report.rows.newest`."""
    about: dict[str, Any] = {
        "name": "facts",
        "title": "What XLA built",
        "intro": "Counts read off each program. They do not scatter: one that changed is a change "
        "of the program.",
    }
    known = newest.dropna(subset=list(TOTALS), how="all")
    if known.empty:
        return Part(
            **about,
            missing="The records hold no facts of programs; asv's own files never do.",
            command="harness run",
        )
    rank = {name: place for place, name in enumerate(_SCENARIOS)}
    known = known.sort_values("scenario", key=lambda s: s.map(rank).fillna(9), kind="stable")
    facts = known.groupby("case_number", sort=True)[list(TOTALS)].max()
    first = known.drop_duplicates("case_number").set_index("case_number")
    about_case = first[["workload", "case", "target", "machine", "scenario", "fingerprint"]]
    # With a cache the same program is built, so each has one row.
    wide = about_case.join(facts).reset_index(drop=True)
    wide = wide[wide["scenario"].isin(["off", ""]) | ~wide["fingerprint"].duplicated()]
    wide = wide.sort_values(["workload"], kind="stable").reset_index(drop=True)
    return Part(
        **about, figures=(_figure(wide),), tables=(_long(wide), _wide(wide)), shown=("facts",)
    )


def _long_rows(wide: pd.DataFrame) -> pd.DataFrame:
    kept = ["workload", "case", "target", "machine"]
    long = wide.melt(kept, list(DRAWN), var_name="fact", value_name="count")
    return long[long["count"].notna()].reset_index(drop=True)


def _figure(wide: pd.DataFrame) -> Figure:
    import altair as alt

    chart = (
        charts.top("fact_bars", "datum.count")
        .mark_bar(height={"band": 0.72}, color="#0072B2")
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
    )


def _long(wide: pd.DataFrame) -> Table:
    columns = (
        *(Column(name, name) for name in ("workload", "case")),
        *(Column(name, name, hidden=True) for name in ("target", "machine")),
        Column("fact", "fact"),
        Column("count", "count", NUMBER),
    )
    return Table("fact_bars", "One fact of each case", columns, _long_rows(wide))


def _wide(wide: pd.DataFrame) -> Table:
    facts = [name for name in TOTALS if wide[name].fillna(0).any()]
    columns = (
        *(Column(name, name) for name in ("workload", "case")),
        *(Column(name, name, hidden=True) for name in ("target", "machine")),
        *(
            Column(name, name.replace("_", " "), BYTES if FACTS[name].unit == "bytes" else COUNT)
            for name in facts
        ),
    )
    return Table("facts", "Facts of each case's program", columns, wide)
