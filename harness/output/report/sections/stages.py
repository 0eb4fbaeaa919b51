"""Where the time goes: the stages of every case, as measured last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.frame import rows_of
from harness.frame.startup import STACKED
from harness.output.report import charts
from harness.output.report.cases import machine_picks, stages_of
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.output.tables import typical
from harness.records.units import seconds_text
from harness.stages.registry import names

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

MOST_ANSWERS = 3


def _content(measured: Measured) -> Content | None:
    ok = typical(measured.ok)
    if ok.empty:
        return None
    shown = [stage for stage in STACKED if stage in set(ok["stage"])]
    figures = (_figure(ok, shown),) if shown else ()
    return Content(figures, (_long(ok), _wide(typical(measured.newest))), shown=("cases",))


def _longest(measured: Measured) -> tuple[str, ...]:
    ok = typical(measured.ok)
    ok = ok[~ok["stage"].isin(names("first_call")) & (ok["scenario"] != _twice(ok))]
    return tuple(
        f"{seconds_text(row['value'])}: {row['stage']} of {row['workload']} {row['case']}".strip()
        for row in rows_of(ok.nlargest(MOST_ANSWERS, "value"))
    ) or ("Nothing was measured with success.",)


def _twice(ok: pd.DataFrame) -> str:
    """Return the scenario whose cases say what others say already, "" for none.

    A cold case is the same as an off one but for the write to the cache.
    """
    return "cold" if "off" in set(ok["scenario"]) else ""


def _figure(ok: pd.DataFrame, shown: list[str]) -> Figure:
    left_out = _twice(ok)
    drawn = f"indexof({shown!r}, datum.stage) >= 0 && datum.scenario != '{left_out}'"
    chart = (
        charts.with_told(charts.top("stages", f"{drawn} ? datum.value : 0"), "value")
        .transform_filter(drawn)
        .transform_calculate(order=f"indexof({shown!r}, datum.stage)")
        .mark_bar(height={"band": 0.72})
        .encode(
            x=charts.seconds("value:Q", "time until one call has run"),
            y=charts.by_case(),
            color=charts.colours("stage:N", charts.STAGE_COLOURS, shown),
            order="order:Q",
            tooltip=["workload:N", "case:N", "stage:N", charts.told("value")],
        )
        .properties(height=alt.Step(22))
    )
    parts = ok[ok["stage"].isin(shown) & (ok["scenario"] != left_out)]
    sums = parts.groupby("stage")["value"].sum().sort_values(ascending=False)
    whole = sums.sum() or 1.0
    shares = ", ".join(f"{stage} {100 * value / whole:.0f} %" for stage, value in sums.items())
    names = (parts["workload"] + " " + parts["case"]).str.strip()
    longest = parts["value"].groupby(names).sum().nlargest(1)
    return Figure(
        "stages",
        "The cases that take longest, by stage",
        f"Over all cases: {shares}. Longest: {longest.index[0]}, {seconds_text(longest.iloc[0])}.",
        chart,
        ("stages",),
        picks=machine_picks(ok),
        most="value",
        drawn={"stage": tuple(shown), "scenario": tuple(sorted({*ok["scenario"]} - {left_out}))},
    )


def _long(ok: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case", "target", "machine", "stage"),
        *plain("one_case", hidden=True),
        Column("value", "time", ColumnKind.SECONDS),
        *(Column(name, name, ColumnKind.SECONDS) for name in ("low", "high")),
        Column("n_processes", "processes", ColumnKind.COUNT),
        *plain("scenario", hidden=True),
    )
    return Table("stages", "Time of each stage", columns, ok)


def _wide(newest: pd.DataFrame) -> Table:
    stages = stages_of(newest)
    first = newest.drop_duplicates("case_number").set_index("case_number")
    ok = newest[newest["status"] == "ok"]
    values = ok.pivot(index="case_number", columns="stage", values="value").reindex(columns=stages)
    n = ok.groupby("case_number")["n_processes"].min()
    kept = first[["workload", "case", "one_case", "target", "machine", "jax", "commit"]]
    kept = kept.assign(commit=kept["commit"].str[:8])
    data = pd.concat([kept, n, values], axis="columns").reset_index(drop=True)
    columns = (
        *plain("workload", "case"),
        *plain("target", "one_case", hidden=True),
        *plain("machine", hidden=data["machine"].nunique() < 2),
        *(Column(stage, stage, ColumnKind.SECONDS, stage=stage) for stage in stages),
        Column("n_processes", "processes", ColumnKind.COUNT),
        *plain("jax", hidden=data["jax"].nunique() < 2),
        *plain("commit", hidden=data["commit"].nunique() < 2),
    )
    caption = "Every case, as measured last; – where a stage was not measured or is not proven"
    return Table("cases", caption, columns, data)


SECTION = Section(
    name="stages",
    title="Where the time goes",
    intro="Tracing, lowering and compiling are paid once per program and process, or loading "
    "instead of compiling where the persistent cache answers; execute is one call. Each value is "
    "the median over processes, of execute and dispatch of their median calls (where results hold "
    "no more, of their least).",
    content=_content,
    missing="No stage was measured with success.",
    command="harness run",
    answer=(1, "What takes longest", _longest),
)
