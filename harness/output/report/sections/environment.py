"""Where the numbers come from: versions, host, device and flags of each origin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.frame.frame import ORIGIN
from harness.output.report.cases import origins
from harness.output.report.content import Column, ColumnKind, Content, Section, Table, plain
from harness.records.units import counted

if TYPE_CHECKING:
    from harness.output.report.measured import Measured


def _content(measured: Measured) -> Content:
    cases = measured.cases
    rows = []
    parts = dict(iter(cases.groupby(ORIGIN, sort=False, dropna=False)))
    for origin in reversed(origins(cases).to_dict("records")):
        part = parts[tuple(origin[name] for name in ORIGIN)]
        texts = part["environment"].dropna()
        texts = texts[texts != ""]
        about = json.loads(texts.iloc[-1]) if len(texts) else {}
        rows.append(
            {
                "machine": origin["machine"],
                "label": origin["label"],
                "dirty": "yes" if origin["dirty"] else "no",
                "env": origin["env"],
                "versions": _versions(part, about),
                "host": _host(about),
                "device": str(about.get("device", "")),
                "flags": ", ".join(f"{n}={v}" for n, v in (about.get("flags") or {}).items()),
                "effort": origin["effort"],
                "n_processes": float(part["n_processes"].max()),
                "cases": float(part["case_number"].nunique()),
            }
        )
    columns = (
        *plain("machine"),
        Column("label", "night or date, commit"),
        Column("dirty", "uncommitted changes"),
        Column("env", "environment"),
        *plain("versions", "host", "device", "flags", "effort"),
        Column("n_processes", "processes", ColumnKind.COUNT),
        Column("cases", "cases", ColumnKind.COUNT),
    )
    data = pd.DataFrame(rows, columns=[column.name for column in columns])
    caption = "Where the numbers come from: machine by machine, newest first"
    return Content(tables=(Table("origins", caption, columns, data),), shown=("origins",))


def _versions(part: pd.DataFrame, about: Mapping[str, Any]) -> str:
    first = part.iloc[-1]
    named = {"Python": first["python"], "jax": first["jax"], "jaxlib": first["jaxlib"]}
    named |= about.get("plugins") or {}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def _host(about: Mapping[str, Any]) -> str:
    host = about.get("host") or {}
    cores, ram = host.get("cores"), host.get("ram_bytes")
    parts = [str(host.get("cpu", "")), f"{cores} cores" if cores else ""]
    parts += [f"{ram / 2**30:.0f} GiB" if ram else "", str(host.get("system", ""))]
    return ", ".join(filter(None, parts))


def _measured(measured: Measured) -> tuple[str, ...]:
    last = measured.newest
    if last.empty:
        return ("Nothing but comparisons with baselines.",)
    days = last["started_at"].dropna().dt.strftime("%Y-%m-%d")
    span = " to ".join(dict.fromkeys([days.min(), days.max()])) if len(days) else "unknown days"
    on = ", ".join(dict.fromkeys(last["machine"]))
    targets = ", ".join(sorted(set(last["target"])))
    versions = ", ".join(sorted(set(last["jax"])))
    return (
        f"{counted(last['case_number'].nunique(), 'case')} of "
        f"{counted(last['workload'].nunique(), 'workload')}, for {targets}.",
        f"{span}, on {on}, with jax {versions}.",
        f"Up to {counted(last['n_processes'].max(), 'process')} per case.",
    )


SECTION = Section(
    name="environment",
    title="Environment",
    intro="Versions, host, device, and the flags that reached XLA.",
    content=_content,
    answer=(0, "What was measured", _measured),
)
