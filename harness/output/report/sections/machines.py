"""The same cases on several machines, side by side: clearly labelled, and nothing is judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.differences import difference, hardware
from harness.frame.startup import STACKED
from harness.output.report import charts
from harness.output.report.cases import axes_of, full_case_texts
from harness.output.report.charts import BLUE, GREEN, GREY, OLIVE, ORANGE, PINK, SKY, VERMILLION
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

_PALETTE = (BLUE, VERMILLION, GREEN, ORANGE, SKY, PINK, OLIVE, GREY)


def _content(measured: Measured) -> Content | None:
    rows = _shared(measured.ok)
    if rows.empty:
        return None
    machines = list(dict.fromkeys(rows["machine"]))
    return Content(
        (_figure(rows, machines),),
        (_long(rows), _wide(rows, machines)),
        shown=("machines",),
        notes=tuple(_differences(rows, machines)),
    )


def _shared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of cases and stages that several machines measured."""
    rows = rows.assign(case=full_case_texts(rows, machine=False))
    keys = ["workload", "version", "target", "transform", "precision", "scenario", "stage"]
    keys += axes_of(rows)
    numbers = rows.groupby(keys, sort=False, dropna=False)["machine"].transform("nunique")
    group = rows.groupby(keys, sort=False, dropna=False).ngroup()
    return rows.assign(group=group)[numbers > 1]


def _figure(rows: pd.DataFrame, machines: list[str]) -> Figure:
    stages = list(dict.fromkeys(rows["stage"]))
    first = [stage for stage in STACKED if stage in stages] or stages
    cases = charts.with_told(charts.top("machine_points", "datum.value"), "value")
    x = charts.seconds("value:Q", "time as measured", log=True)
    palette = dict(zip(machines, itertools.cycle(_PALETTE), strict=False))
    points = cases.mark_point(filled=True, size=80, opacity=1).encode(
        x=x,
        y=charts.by_case(),
        color=charts.colours("machine:N", palette, machines),
        tooltip=["workload:N", "case:N", "machine:N", "stage:N", charts.told("value")],
    )
    spans = cases.mark_line(opacity=0.4, color=GREY).encode(x=x, y=charts.by_case(), detail="row:N")
    return Figure(
        "machines",
        "One stage of each case, across unlike machines",
        f"{rows['group'].nunique()} stages of cases that more than one of {', '.join(machines)} "
        "measured. Drawn are those that take longest.",
        (spans + points).properties(height=alt.Step(22)),
        ("machine_points",),
        picks=(("stage", "stage", first[-1]),),
        most="value",
    )


def _long(rows: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case", "target", "machine", "stage"),
        *plain("one_case", hidden=True),
        Column("value", "time", ColumnKind.SECONDS),
        Column("n_processes", "processes", ColumnKind.COUNT),
    )
    return Table("machine_points", "One case on each machine", columns, rows)


def _wide(rows: pd.DataFrame, machines: list[str]) -> Table:
    by_group = rows.groupby("group", sort=False)
    about = by_group[["workload", "case", "one_case", "target", "stage"]].first()
    for name in ("jax", "commit"):
        shown = rows[name].str[:8]
        about[name] = shown.groupby(rows["group"]).agg(lambda texts: ", ".join(sorted(set(texts))))
    values, calibrated = (
        rows.pivot(index="group", columns="machine", values=name)[machines]
        for name in ("value", "calibrated")
    )
    shown_values = values.set_axis([f"machine{n}" for n in range(len(machines))], axis="columns")
    data = about.join(shown_values)
    data["ratio"] = values.max(axis=1) / values.min(axis=1)
    calibrated = calibrated[calibrated.notna().sum(axis=1) > 1]  # of fewer there is no ratio
    data["calibrated_ratio"] = calibrated.max(axis=1) / calibrated.min(axis=1)
    data = data.sort_values("ratio", ascending=False, kind="stable").reset_index(drop=True)
    columns = (
        *plain("workload", "case"),
        *plain("target", hidden=data["target"].nunique() < 2),
        *plain("one_case", hidden=True),
        *plain("stage"),
        *(Column(f"machine{n}", name, ColumnKind.SECONDS) for n, name in enumerate(machines)),
        Column("ratio", "slowest / fastest", ColumnKind.RATIO),
        Column("calibrated_ratio", "the same, calibrated", ColumnKind.RATIO),
        *plain("jax", "commit"),
    )
    caption = "Across unlike machines: seconds as measured, and what is left of the ratio once "
    caption += "each value is divided by the reference of its own machine"
    return Table("machines", caption, columns, data)


def _differences(rows: pd.DataFrame, machines: list[str]) -> list[str]:
    """Return in a line for each machine but the first how it differs from that."""
    # Targets have devices of their own, which say nothing of the machine.
    first = {
        name: hardware(text)._replace(device=None)
        for name, text in zip(rows["machine"][::-1], rows["environment"][::-1], strict=True)
    }
    base = machines[0]
    return [
        f"{base} → {name}: {difference(first[base], first[name]) or 'no difference is recorded'}."
        for name in machines[1:]
    ]


SECTION = Section(
    name="machines",
    title="Machines side by side",
    intro="The same version of a case as each machine measured it last, in seconds as measured. "
    "These are different machines: what differs is machine and program together, and nothing is "
    "tested here.",
    content=_content,
)
