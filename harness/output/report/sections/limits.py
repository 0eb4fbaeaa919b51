"""The limits of the numbers: what failed, how often verdicts are wrong, how it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from harness.frame.differences import shared_names
from harness.frame.frame import INSTRUMENTS, ordinary
from harness.output.report.content import Column, ColumnKind, Content, Section, Table, plain
from harness.verdicts.error_rates import total

if TYPE_CHECKING:
    from harness.output.report.measured import Measured
    from harness.verdicts.error_rates import ErrorRates

LEAST_PROCESSES = 6
"""Fewer give no 95 % interval of a median."""

METHOD = (
    "The process is the unit: each gives one value per case and stage, and n counts processes. "
    "Fewer than 6 give no interval of the median.",
    "Cold is cold: nothing of an earlier pass is in memory, the persistent cache is off unless the "
    "scenario says otherwise, and JAX's own events must agree, or the sample is refused.",
    "Trace, lower and compile are medians over passes. Of execute and dispatch the median call is "
    "shown, and the least is compared, because what disturbs a call only makes it longer.",
    "A machine drifts. Compare over time by the calibrated value, which divides by a reference "
    "measured in the same process; seconds alone compare within one run.",
    "A changed time with an unchanged program is the environment's doing, not the program's.",
)

_PROBLEMS = {
    "torn": "torn by a crash",
    "corrupt": "corrupt",
    "other_schema": "of another schema version",
    "old_asv": "in files of asv before 0.5",
    "unreadable": "in files that cannot be read",
}


def _content(measured: Measured) -> Content:
    both = (_reasons(measured.frame), _rates(measured.rates))
    tables = tuple(table for table in both if len(table.data))
    shown = tuple(table.name for table in tables)
    return Content((), tables, shown, notes=METHOD, intro=" ".join(_doubts(measured)))


def _doubts(measured: Measured) -> tuple[str, ...]:
    """Return, in a sentence each, what a reader should not trust."""
    newest, comparisons = measured.newest, measured.comparisons
    lines = [
        f"Unlike machines share the name {name} ({differs}): they are not compared, and what is "
        "shown of a case is of one of them."
        for name, differs in shared_names(measured.frame).items()
    ]
    counts = newest["status"].value_counts()
    for status in ("failed", "refused"):
        if status in counts:
            lines.append(f"Stages of cases that are {status}: {counts[status]}.")
    few = ((newest["status"] == "ok") & (newest["n_processes"] < LEAST_PROCESSES)).sum()
    if few:
        lines.append(f"Values without interval, from under {LEAST_PROCESSES} processes: {few}.")
    dirty = newest.loc[newest["dirty"] != "", "workload"].nunique()
    if dirty:
        lines.append(f"Workloads measured with uncommitted changes: {dirty}.")
    if len(comparisons) and comparisons["ratio"].isna().any():
        without = comparisons["ratio"].isna().sum()
        lines.append(f"{without} of {len(comparisons)} comparisons with a baseline have no ratio.")
    machines = {one.machine for one in measured.rates}
    lines += [
        f"How often verdicts are wrong on {machine} was not measured; `harness aa` does."
        for machine in dict.fromkeys(newest["machine"])
        if machine not in machines
    ]
    problems = measured.frame.attrs.get("problems") or {}
    parts = [f"{problems[name]} {text}" for name, text in _PROBLEMS.items() if problems.get(name)]
    if parts:
        lines.append(f"Lines that could not be read: {', '.join(parts)}.")
    return tuple(lines) or ("Nothing stands out.",)


def _reasons(frame: pd.DataFrame) -> Table:
    noted = ordinary(frame)
    ours = noted["workload"].isin(INSTRUMENTS) & (noted["status"] == "skipped")
    noted = noted[(noted["reason"] != "") & ~ours]
    groups = noted.groupby(["machine", "workload", "status", "reason"], sort=False)
    data = groups.agg(
        rows=("stage", "size"),
        stages=("stage", lambda stages: ", ".join(dict.fromkeys(stages))),
        target=("target", "first"),
    ).reset_index()
    order = {"refused": 0, "failed": 1, "ok": 2, "skipped": 3}
    data = data.assign(order=data["status"].map(order).fillna(4).astype(float))
    data = data.sort_values(["order", "rows"], ascending=[True, False], kind="stable")
    columns = (
        *plain("workload", "status", "reason", "stages"),
        Column("rows", "rows", ColumnKind.COUNT),
        *plain("machine", hidden=data["machine"].nunique() < 2),
        *plain("target", hidden=True),
    )
    return Table("reasons", "What is not ok or leaves something out, and why", columns, data)


def _rates(rates: Sequence[ErrorRates]) -> Table:
    rows = []
    for one in rates:
        about = {"machine": one.machine, "env": one.env, "effort": one.effort}
        shares = {"identical arms called different": one.flagged}
        shares["families of identical arms with such a row"] = total(one.families.values())
        shares["the same by asv's rule"] = one.flagged_by_asv
        for power in one.power:
            name = f"+{100 * power.effect:.0f} % in {power.stage} found, effort {power.effort}"
            shares[name] = power.found
        rows += [
            about
            | {"what": what, "share": rate.count / rate.of if rate.of else None}
            | {"low": rate.low, "high": rate.high, "of": float(rate.of)}
            for what, rate in shares.items()
        ]
    names = ["machine", "env", "effort", "what", "share", "low", "high", "of"]
    columns = (
        *plain(*names[:4]),
        *(Column(name, name, ColumnKind.SHARE) for name in ("share", "low", "high")),
        Column("of", "of", ColumnKind.NUMBER),
    )
    data = pd.DataFrame(rows, columns=names)
    return Table("rates", "How often verdicts are right on this machine", columns, data)


SECTION = Section(
    name="limits",
    title="Limits of the numbers",
    intro="What cannot be trusted, and how the numbers are taken.",
    content=_content,
    answer=(3, "What cannot be trusted", _doubts),
)
