"""What changed since the time before: verdicts with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.frame.frame import ORIGIN, axis_columns
from harness.frame.tables import case_texts
from harness.report import charts
from harness.report.content import COUNT, NUMBER, RATIO, SECONDS, Column, Figure, Part, Table
from harness.report.rows import origins
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.judge import COLUMNS, compare_arms
from harness.verdicts.summary import environment_differences

if TYPE_CHECKING:
    import pandas as pd

ORDER = ("slower", "faster", "unsure", "incomparable", "same")
"""Verdicts in the order in which a reader wants them."""


def section(verdicts: pd.DataFrame, compared: Sequence[str]) -> Part:
    """Return the section; `verdicts` and `compared` are of :func:`latest`."""
    about: dict[str, Any] = {
        "name": "verdicts",
        "title": "What changed",
        "intro": "What was measured last against the time before, on the same machine. A ratio "
        "above 1 is slower. “Same” rests on evidence; where there is too little of it, the "
        "verdict is “unsure”.",
    }
    if verdicts.empty:
        return Part(
            **about,
            missing="There is no earlier measurement of the same machine to compare with.",
            command="harness run --night NAME",
        )
    figures = (_figure(verdicts),) if verdicts["ratio"].notna().any() else ()
    return Part(
        **about,
        figures=figures,
        tables=(_table(verdicts),),
        shown=("verdicts",),
        notes=tuple(compared),
    )


def latest(
    frame: pd.DataFrame, cases: pd.DataFrame, rates: Sequence[ErrorRates]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the verdicts of each machine's newest origin, and in words what was compared.

    The other side is the origin before it with the same environment and effort, or else the one
    before it of the same effort.

    Args:
        frame: of :func:`harness.load`.
        cases: of :func:`harness.report.rows.with_cases`.
        rates: what the machines' own A/A measurements say.

    Returns:
        The frame of :func:`harness.verdicts.compare_arms`, with `case` as text,
        those that need a look first.
    """
    import pandas as pd

    parts, said = [], []
    for machine, found in origins(cases).groupby("machine", sort=True):
        new = found.iloc[-1]
        older = found.iloc[:-1][found.iloc[:-1]["effort"] == new["effort"]]
        alike = older[older["env"] == new["env"]]
        if older.empty:
            continue
        old = (older if alike.empty else alike).iloc[-1]
        arms = [frame[(frame[ORIGIN] == origin[ORIGIN]).all(axis=1)] for origin in (old, new)]
        parts.append(compare_arms(arms[0], arms[1], rates=list(rates) or None))
        differs = environment_differences(*arms).get(str(machine))
        said.append(
            f"{machine}: {_name(old)} against {_name(new)}{f': {differs}' if differs else ''}."
        )
    if not parts:
        return pd.DataFrame(columns=[*COLUMNS, "case"]), []
    verdicts = pd.concat(parts, ignore_index=True)
    axes = [name for name in axis_columns(verdicts) if name not in COLUMNS]
    texts = case_texts(verdicts[["precision", "transform", "target", *axes]])
    several = len(parts) > 1
    shown = [
        ", ".join(
            filter(
                None,
                [
                    text,
                    f"scenario={scenario}" if scenario not in ("", "off") else "",
                    f"on {machine}" if several else "",
                ],
            )
        )
        for text, scenario, machine in zip(
            texts, verdicts["scenario"], verdicts["machine"], strict=True
        )
    ]
    rank = verdicts["verdict"].map({name: place for place, name in enumerate(ORDER)}).fillna(9)
    return verdicts.assign(case=shown, rank=rank).sort_values(
        ["rank", "ratio"], ascending=[True, False], kind="stable", ignore_index=True
    ), said


def _name(origin: pd.Series[Any]) -> str:
    return f"{origin['label'].strip()} ({origin['env']})"


def _figure(verdicts: pd.DataFrame) -> Figure:
    import altair as alt

    scale = charts.log_scale()
    cases = (
        charts.rows("verdicts")
        .transform_filter("isValid(datum.ratio)")
        .transform_calculate(row="datum.workload + ' ' + datum.case + ' · ' + datum.stage")
        .transform_window(
            place="row_number()",
            sort=[alt.SortField("rank", order="ascending"), alt.SortField("p", order="ascending")],
        )
        .transform_filter(f"datum.place <= {2 * charts.MOST_ROWS}")
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=alt.EncodingSortField("place", op="min"),
        axis=alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6),
    )
    given = [name for name in charts.VERDICT_COLOURS if name in set(verdicts["verdict"])]
    colour = charts.colours("verdict:N", charts.VERDICT_COLOURS, given)
    axis = charts.axis("~g")
    points = cases.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("ratio:Q", scale=scale, axis=axis, title="time now / time before"),
        y=y,
        color=colour,
        tooltip=[
            *("workload:N", "case:N", "stage:N", "verdict:N", "reason:N"),
            alt.Tooltip("ratio:Q", format=".3f"),
        ],
    )
    spans = (
        cases.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour)
    )
    return Figure(
        "verdicts",
        "Ratio now / before, with its 95 % interval",
        f"{counts_text(verdicts)}. Drawn are those that need a look first.",
        (charts.one("verdicts") + spans + points).properties(height=alt.Step(18)),
        ("verdicts",),
    )


def counts_text(verdicts: pd.DataFrame) -> str:
    """Return how often each verdict was given: `2 slower, 5 unsure, 40 same`."""
    counts = verdicts["verdict"].value_counts()
    return ", ".join(f"{counts[name]} {name}" for name in ORDER if name in counts)


def _table(verdicts: pd.DataFrame) -> Table:
    columns = (
        *(Column(name, name) for name in ("workload", "case", "stage", "verdict")),
        *(Column(name, name, hidden=True) for name in ("target", "machine")),
        Column("ratio", "ratio", RATIO),
        Column("low", "low", RATIO),
        Column("high", "high", RATIO),
        Column("a_s", "before", SECONDS),
        Column("b_s", "now", SECONDS),
        Column("cause", "cause"),
        Column("reason", "reason"),
        Column("basis", "basis"),
        Column("n_a", "n before", COUNT),
        Column("n_b", "n now", COUNT),
        Column("p_adjusted", "p, adjusted", NUMBER),
        Column("p", "p", NUMBER, hidden=True),
        Column("rank", "rank", COUNT, hidden=True),
    )
    return Table("verdicts", "Every case and stage, with the reason", columns, verdicts)
