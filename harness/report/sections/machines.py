"""The same cases on several machines, side by side: clearly labelled, and nothing is judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from harness.frame.machines import difference, hardware
from harness.report import charts
from harness.report.charts import GREEN, GREY, ORANGE, SKY, VERMILLION
from harness.report.content import COUNT, RATIO, SECONDS, Column, Figure, Part, Table
from harness.report.rows import axes_of, plain_case_texts

if TYPE_CHECKING:
    import pandas as pd

_PALETTE = ("#0072B2", VERMILLION, GREEN, ORANGE, SKY, "#CC79A7", "#B8A100", GREY)
_FIRST_STAGES = ("execute", "compile")
"""Of which the first that there is, is shown to begin with."""


def section(newest: pd.DataFrame) -> Part | None:
    """Return the section, or None where no case was measured on two machines.

    `newest` is of :func:`harness.report.rows.newest`.
    """
    rows = _shared(newest)
    if rows.empty:
        return None
    names = list(dict.fromkeys(rows["machine"]))
    return Part(
        "machines",
        "Machines side by side",
        "The same version of a case as each machine measured it last, in seconds as measured. "
        "These are different machines: what differs is machine and program together, and nothing "
        "is tested here. For verdicts: harness compare machine=A machine=B --across machine.",
        figures=(_figure(rows, names),),
        tables=(_long(rows), _wide(rows, names)),
        shown=("machines",),
        notes=tuple(_differences(rows, names)),
    )


def _shared(newest: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of cases and stages that several machines measured with success."""
    rows = newest[newest["status"] == "ok"]
    rows = rows.assign(case=plain_case_texts(rows))
    keys = ["workload", "version", "target", "transform", "precision", "scenario", "stage"]
    keys += axes_of(newest)
    numbers = rows.groupby(keys, sort=False, dropna=False)["machine"].transform("nunique")
    group = rows.groupby(keys, sort=False, dropna=False).ngroup()
    return rows.assign(group=group)[numbers > 1]


def _figure(rows: pd.DataFrame, names: list[str]) -> Figure:
    import altair as alt

    stages = list(dict.fromkeys(rows["stage"]))
    start = next((stage for stage in _FIRST_STAGES if stage in stages), stages[0])
    cases = charts.with_told(charts.top("machine_points", "datum.value"), "value")
    x = charts.seconds("value:Q", "time as measured", log=True)
    palette = dict(zip(names, itertools.cycle(_PALETTE), strict=False))
    points = cases.mark_point(filled=True, size=80, opacity=1).encode(
        x=x,
        y=charts.by_case(),
        color=charts.colours("machine:N", palette, names),
        tooltip=["workload:N", "case:N", "machine:N", "stage:N", charts.told("value")],
    )
    spans = cases.mark_line(opacity=0.4, color=GREY).encode(x=x, y=charts.by_case(), detail="row:N")
    return Figure(
        "machines",
        "One stage of each case, across unlike machines",
        f"{rows['group'].nunique()} stages of cases that more than one of {', '.join(names)} "
        "measured. Drawn are those that take longest.",
        (spans + points).properties(height=alt.Step(22)),
        ("machine_points",),
        picks=(("stage", "stage", start),),
    )


def _long(rows: pd.DataFrame) -> Table:
    columns = (
        *(Column(name, name) for name in ("workload", "case", "target", "machine", "stage")),
        Column("value", "time", SECONDS),
        Column("n_processes", "processes", COUNT),
    )
    return Table("machine_points", "One case on each machine", columns, rows)


def _wide(rows: pd.DataFrame, names: list[str]) -> Table:
    import pandas as pd

    by_group = rows.groupby("group", sort=False)
    about = by_group[["workload", "case", "target", "stage"]].first()
    for name in ("jax", "commit"):
        shown = rows[name].str[:8]
        about[name] = shown.groupby(rows["group"]).agg(lambda texts: ", ".join(sorted(set(texts))))
    values, calibrated = (
        rows.pivot(index="group", columns="machine", values=name)[names]
        for name in ("value", "calibrated")
    )
    shown_values = values.set_axis([f"machine{n}" for n in range(len(names))], axis="columns")
    ratios = pd.DataFrame(
        {
            "ratio": values.max(axis=1) / values.min(axis=1),
            # Of fewer than two there is no ratio.
            "calibrated_ratio": (calibrated.max(axis=1) / calibrated.min(axis=1)).where(
                calibrated.notna().sum(axis=1) > 1
            ),
        }
    )
    data = about.join(shown_values).join(ratios)
    data = data.sort_values("ratio", ascending=False, kind="stable").reset_index(drop=True)
    columns = (
        *(Column(name, name) for name in ("workload", "case")),
        Column("target", "target", hidden=data["target"].nunique() < 2),
        Column("stage", "stage"),
        *(Column(f"machine{n}", name, SECONDS) for n, name in enumerate(names)),
        Column("ratio", "slowest / fastest", RATIO),
        Column("calibrated_ratio", "the same, calibrated", RATIO),
        *(Column(name, name) for name in ("jax", "commit")),
    )
    caption = "Across unlike machines: seconds as measured, and what is left of the ratio once "
    caption += "each value is divided by the reference of its own machine"
    return Table("machines", caption, columns, data)


def _differences(rows: pd.DataFrame, names: list[str]) -> list[str]:
    """Return in a line for each machine but the first how it differs from that."""
    # Targets have devices of their own, which say nothing of the machine.
    first = {
        name: hardware(text)._replace(device=None)
        for name, text in zip(rows["machine"][::-1], rows["environment"][::-1], strict=True)
    }
    base = names[0]
    return [
        f"{base} → {name}: {difference(first[base], first[name]) or 'no difference is recorded'}."
        for name in names[1:]
    ]
