"""Environment, and the limits of the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.frame.frame import INSTRUMENTS, ORIGIN, ordinary
from harness.report.content import COUNT, NUMBER, SHARE, TEXT, Column, Part, Table
from harness.report.rows import origins
from harness.verdicts.error_rates import ErrorRates, Rate

if TYPE_CHECKING:
    import pandas as pd

LEAST_PROCESSES = 6
"""Fewer give no 95 % interval of a median."""

METHOD = (
    "The process is the unit: each gives one value per case and stage, and n counts processes. "
    "Fewer than 6 give no interval of the median.",
    "Cold is cold: nothing of an earlier pass is in memory, the persistent cache is off unless the "
    "scenario says otherwise, and JAX's own events must agree, or the sample is refused.",
    "Trace, lower and compile are medians over passes; execute and dispatch are the least, because "
    "what disturbs a call only makes it longer.",
    "A machine drifts. Compare over time by the calibrated value, which divides by a reference "
    "measured in the same process; seconds alone compare within one run.",
    "A changed time with an unchanged program is the environment's doing, not the program's.",
)


def environment(cases: pd.DataFrame) -> Part:
    """Return the section on where the numbers come from; `cases` of :mod:`harness.report.rows`."""
    import pandas as pd

    rows = []
    per = cases.groupby(ORIGIN, sort=False, dropna=False)
    sizes = {origin: part for origin, part in per}
    for origin in reversed(origins(cases).to_dict("records")):
        part = sizes[tuple(origin[name] for name in ORIGIN)]
        about = _environment(part)
        rows.append(
            {
                "machine": origin["machine"],
                "label": origin["label"],
                "dirty": "yes" if origin["dirty"] else "no",
                "env": origin["env"],
                "versions": _versions(part, about),
                "host": _host(about),
                "device": str(about.get("device", "")),
                "flags": _flags(about),
                "effort": origin["effort"],
                "n_processes": float(part["n_processes"].max()),
                "cases": float(part["case_number"].nunique()),
            }
        )
    columns = (
        Column("machine", "machine"),
        Column("label", "night or date, commit"),
        Column("dirty", "uncommitted changes"),
        Column("env", "environment"),
        Column("versions", "versions"),
        Column("host", "host"),
        Column("device", "device"),
        Column("flags", "flags"),
        Column("effort", "effort"),
        Column("n_processes", "processes", COUNT),
        Column("cases", "cases", COUNT),
    )
    names = [column.name for column in columns]
    data = pd.DataFrame(rows, columns=names)
    table = Table(
        "origins", "Where the numbers come from: machine by machine, newest first", columns, data
    )
    return Part(
        "environment",
        "Environment",
        "Versions, host, device, and the flags that reached XLA.",
        tables=(table,),
        shown=("origins",),
    )


def _environment(part: pd.DataFrame) -> Mapping[str, Any]:
    known = part["environment"]
    texts = known[known.map(lambda text: isinstance(text, str) and text != "")]
    return json.loads(texts.iloc[-1]) if len(texts) else {}


def _versions(part: pd.DataFrame, about: Mapping[str, Any]) -> str:
    first = part.iloc[-1]
    named = {"Python": first["python"], "jax": first["jax"], "jaxlib": first["jaxlib"]}
    named |= about.get("plugins") or {}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def _host(about: Mapping[str, Any]) -> str:
    host = about.get("host") or {}
    ram = host.get("ram_bytes")
    return ", ".join(
        filter(
            None,
            [
                str(host.get("cpu", "")),
                f"{host['cores']} cores" if host.get("cores") else "",
                f"{ram / 2**30:.0f} GiB" if ram else "",
                str(host.get("system", "")),
            ],
        )
    )


def _flags(about: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in (about.get("flags") or {}).items())


def limits(frame: pd.DataFrame, found: Sequence[str], rates: Sequence[ErrorRates]) -> Part:
    """Return the section on what cannot be trusted.

    Args:
        frame: of :func:`harness.load`.
        found: of :func:`doubts`, and what else there is.
        rates: what the machines' own A/A measurements say.
    """
    tables = [table for table in (_reasons(frame), _rates(rates)) if len(table.data)]
    return Part(
        "limits",
        "Limits of the numbers",
        " ".join(found) or "Nothing stands out.",
        tables=tuple(tables),
        shown=tuple(table.name for table in tables),
        notes=METHOD,
    )


def doubts(
    newest: pd.DataFrame, comparisons: pd.DataFrame, rates: Sequence[ErrorRates]
) -> list[str]:
    """Return, in a sentence each, what a reader should not trust."""
    lines = []
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
    known = {one.machine for one in rates}
    lines += [
        f"How often verdicts are wrong on {machine} was not measured; `harness aa` does."
        for machine in dict.fromkeys(newest["machine"])
        if machine not in known
    ]
    return lines


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
        Column("workload", "workload"),
        Column("status", "status"),
        Column("reason", "reason"),
        Column("stages", "stages"),
        Column("rows", "rows", COUNT),
        Column("machine", "machine", TEXT, hidden=data["machine"].nunique() < 2),
        Column("target", "target", TEXT, hidden=True),
    )
    return Table("reasons", "What is not ok or leaves something out, and why", columns, data)


def _rates(rates: Sequence[ErrorRates]) -> Table:
    import pandas as pd

    rows = []
    for one in rates:
        about = {"machine": one.machine, "env": one.env, "effort": one.effort}
        found = {"identical arms called different": one.flagged}
        found["the same by asv's rule"] = one.flagged_by_asv
        for power in one.power:
            name = f"+{100 * power.effect:.0f} % in {power.stage} found, effort {power.effort}"
            found[name] = power.found
        rows += [about | {"what": what, **_rate(rate)} for what, rate in found.items()]
    names = ["machine", "env", "effort", "what", "share", "low", "high", "of"]
    columns = (
        *(Column(name, name) for name in names[:4]),
        Column("share", "share", SHARE),
        Column("low", "low", SHARE),
        Column("high", "high", SHARE),
        Column("of", "of", NUMBER),
    )
    data = pd.DataFrame(rows, columns=names)
    return Table("rates", "How often verdicts are right on this machine", columns, data)


def _rate(rate: Rate) -> dict[str, float]:
    share = rate.count / rate.of if rate.of else float("nan")
    return {"share": share, "low": rate.low, "high": rate.high, "of": float(rate.of)}
