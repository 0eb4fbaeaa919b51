"""Where the time goes: the stages of every case, as measured last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.records.units import seconds_text
from harness.report import charts
from harness.report.content import COUNT, SECONDS, TEXT, Column, Figure, Part, Table
from harness.report.rows import machine_picks, stages_of

if TYPE_CHECKING:
    import pandas as pd

STACKED = ("trace", "lower", "compile", "load", "execute")
"""Stages that follow each other; the others overlap with these."""


def section(newest: pd.DataFrame) -> Part:
    """Return the section; `newest` is of :func:`harness.report.rows.newest`."""
    about: dict[str, Any] = {
        "name": "stages",
        "title": "Where the time goes",
        "intro": "Tracing, lowering and compiling are paid once per program and process, or "
        "loading instead of compiling where the persistent cache answers; execute is one call. "
        "Each value is the median over processes.",
    }
    ok = newest[newest["status"] == "ok"]
    if ok.empty:
        return Part(**about, missing="No stage was measured with success.", command="harness run")
    shown = [stage for stage in STACKED if stage in set(ok["stage"])]
    figures = (_figure(ok, shown),) if shown else ()
    return Part(**about, figures=figures, tables=(_long(ok), _wide(newest)), shown=("cases",))


def twice(ok: pd.DataFrame) -> str:
    """Return the scenario whose cases say what others say already, "" for none.

    A cold case is the same as an off one but for the write to the cache.
    """
    return "cold" if "off" in set(ok["scenario"]) else ""


def _figure(ok: pd.DataFrame, shown: list[str]) -> Figure:
    import altair as alt

    left_out = twice(ok)
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
        f"The {min(charts.MOST_ROWS, names.nunique())} cases that take longest, by stage",
        f"Over all cases: {shares}. Longest: {longest.index[0]}, {seconds_text(longest.iloc[0])}.",
        chart,
        ("stages",),
        picks=machine_picks(ok),
    )


def _long(ok: pd.DataFrame) -> Table:
    columns = (
        *(Column(name, name) for name in ("workload", "case", "target", "machine", "stage")),
        Column("value", "time", SECONDS),
        Column("low", "low", SECONDS),
        Column("high", "high", SECONDS),
        Column("n_processes", "processes", COUNT),
        Column("scenario", "scenario", hidden=True),
    )
    return Table("stages", "Time of each stage", columns, ok)


def _wide(newest: pd.DataFrame) -> Table:
    import pandas as pd

    stages = stages_of(newest)
    first = newest.drop_duplicates("case_number").set_index("case_number")
    ok = newest[newest["status"] == "ok"]
    values = ok.pivot(index="case_number", columns="stage", values="value").reindex(columns=stages)
    n = ok.groupby("case_number")["n_processes"].min()
    kept: dict[str, Any] = {
        name: first[name] for name in ("workload", "case", "target", "machine", "jax", "commit")
    }
    kept["commit"] = kept["commit"].str[:8]
    data = pd.concat([pd.DataFrame(kept), n, values], axis="columns").reset_index(drop=True)
    columns = (
        Column("workload", "workload"),
        Column("case", "case"),
        Column("target", "target", TEXT, hidden=True),
        Column("machine", "machine", TEXT, hidden=data["machine"].nunique() < 2),
        *(Column(stage, stage, SECONDS, stage=stage) for stage in stages),
        Column("n_processes", "processes", COUNT),
        *(Column(n, n, TEXT, hidden=data[n].nunique() < 2) for n in ("jax", "commit")),
    )
    caption = "Every case, as measured last; – where a stage was not measured or is not proven"
    return Table("cases", caption, columns, data)
