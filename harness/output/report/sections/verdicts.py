"""What changed since the time before: verdicts with their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from harness.frame.frame import rows_of
from harness.output.report import charts
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.verdicts.verdict import KINDS, SLOWER

if TYPE_CHECKING:
    from harness.output.report.measured import Measured

MOST_SLOWER = 2
"""Rows that the top of the page names."""


def _content(measured: Measured) -> Content | None:
    verdicts, compared = measured.compared
    if verdicts.empty:
        return None
    figures = (_figure(verdicts),) if verdicts["ratio"].notna().any() else ()
    return Content(figures, (_table(verdicts),), shown=("verdicts",), notes=compared)


def _changed(measured: Measured) -> tuple[str, ...]:
    changed, compared = measured.compared
    if changed.empty:
        return ("Nothing to compare with yet.",)
    worse = changed[changed["verdict"] == SLOWER].head(MOST_SLOWER)
    lines = [
        f"{row['ratio']:.2f} × the time: {row['stage']} of {row['workload']} {row['case']}".strip()
        for row in rows_of(worse)
    ]
    if not measured.points.empty:
        count = len(measured.changes)
        lines.append(f"{count} change {'point' if count == 1 else 'points'} in the history.")
    return (f"{_counts(changed)}.", *lines, *compared)


def _counts(verdicts: pd.DataFrame) -> str:
    """Return how often each verdict was given: `2 slower, 5 unsure, 40 same`."""
    counts = verdicts["verdict"].value_counts()
    return ", ".join(f"{counts[name]} {name}" for name in KINDS if name in counts)


def _figure(verdicts: pd.DataFrame) -> Figure:
    cases = charts.most(
        charts.rows("verdicts")
        .transform_filter("isValid(datum.ratio)")
        .transform_calculate(row="datum.workload + ' ' + datum.case + ' · ' + datum.stage"),
        "place",
        [alt.SortField("rank", order="ascending"), alt.SortField("p", order="ascending")],
    )
    given = [name for name in charts.VERDICT_COLOURS if name in set(verdicts["verdict"])]
    drawn = charts.ratios(
        "verdicts",
        cases,
        charts.by_case("place"),
        charts.colours("verdict:N", charts.VERDICT_COLOURS, given),
        "time now / time before",
        [
            "workload:N",
            "case:N",
            "stage:N",
            "verdict:N",
            "reason:N",
            alt.Tooltip("ratio:Q", format=".3f"),
        ],
    )
    return Figure(
        "verdicts",
        "Ratio now / before, with its 95 % interval",
        f"{_counts(verdicts)}. Drawn are those that need a look first.",
        drawn,
        ("verdicts",),
    )


def _table(verdicts: pd.DataFrame) -> Table:
    columns = (
        *plain("workload", "case", "stage", "verdict"),
        *plain("target", "machine", "one_case", "change", hidden=True),
        *(Column(name, name, ColumnKind.RATIO) for name in ("ratio", "low", "high")),
        Column("a_s", "before", ColumnKind.SECONDS),
        Column("b_s", "now", ColumnKind.SECONDS),
        *plain("cause", "reason", "evidence", "clock"),
        Column("n_a", "n before", ColumnKind.COUNT),
        Column("n_b", "n now", ColumnKind.COUNT),
        Column("p_adjusted", "p, adjusted", ColumnKind.NUMBER),
        Column("p", "p", ColumnKind.NUMBER, hidden=True),
        Column("rank", "rank", ColumnKind.COUNT, hidden=True),
    )
    return Table("verdicts", "Every case and stage, with the reason", columns, verdicts)


SECTION = Section(
    name="verdicts",
    title="What changed",
    intro="What was measured last against the time before, on the same machine. A ratio above 1 is "
    "slower. “Same” rests on evidence; where there is too little of it, the verdict is “unsure”.",
    content=_content,
    missing="There is no earlier measurement of the same machine and effort to compare with.",
    command="harness run --night NAME",
    answer=(2, "What changed", _changed),
)
