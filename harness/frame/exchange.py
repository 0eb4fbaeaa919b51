"""Rows in the formats of other tools: a value, its interval and its samples by name.

Each tool has a writer in :data:`FORMATS`. Units are the tool's own: nanoseconds where one file of
it has values of one unit by convention, seconds where its format is in seconds.
"""

from __future__ import annotations

import enum
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from harness.frame.cases import full_names
from harness.frame.columns import AXES, decode_axes
from harness.frame.frame import INSTRUMENTS, PLACE, ordinary, place_text, rows_of

Rows = Sequence[Mapping[str, Any]]

_NS = 1e9


def newest(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a value, of each machine those of the commit that was measured last.

    They have a column `name`: workload, case and stage, and what tells them apart besides. Of rows
    of one name the one that was measured last counts.
    """
    rows = ordinary(frame)
    rows = rows[(rows["status"] == "ok") & rows["value"].notna()]
    rows = rows[~rows["workload"].isin(INSTRUMENTS)]
    rows = rows.sort_values("started_at", kind="stable", na_position="first")
    last = rows.groupby("machine")[["commit", "dirty", "night"]].transform("last")
    rows = rows[(last == rows[last.columns]).all(axis=1)]
    names = full_names(rows, scenario=True, machine="machine=")
    texts = pd.Series(names, rows.index, dtype="str") + " " + rows["stage"]
    place = pd.Series(map(place_text, rows_of(rows[PLACE])), rows.index, dtype="str")
    several = place.groupby(texts).transform("nunique") > 1
    rows = rows.assign(name=texts.where(~several, texts + " " + place))
    return rows.drop_duplicates("name", keep="last").sort_index()


def _samples(row: Mapping[str, Any]) -> list[float]:
    """Return a value per process; of what asv stored without its samples, the median alone."""
    finite = [one for one in row["samples"] if math.isfinite(one)]
    return finite or [row["value"]]


def _in_ns(row: Mapping[str, Any]) -> tuple[str, float]:
    """Return the unit of a row, with times in nanoseconds, and what to multiply its value by."""
    return ("ns", _NS) if row["unit"] == "seconds" else (row["unit"] or "value", 1.0)


def _benchmark_action(rows: Rows) -> Any:
    """`customSmallerIsBetter` of github-action-benchmark."""
    entries = []
    for row in rows:
        unit, factor = _in_ns(row)
        half = (row["high"] - row["low"]) / 2 * factor
        about = (row["machine"], row["commit"][:8], place_text(row), f"n = {row['n_samples']}")
        entry = {"name": row["name"], "unit": unit, "value": row["value"] * factor}
        spread = {} if math.isnan(half) else {"range": f"± {half:.4g}"}
        entries.append({**entry, **spread, "extra": "\n".join(filter(None, about))})
    return entries


def _bencher(rows: Rows) -> Any:
    """Bencher Metric Exchange: its built-in measure `latency` is in nanoseconds."""
    metrics: dict[str, Any] = {}
    for row in rows:
        unit, factor = _in_ns(row)
        ends = {"lower_value": row["low"] * factor, "upper_value": row["high"] * factor}
        finite = {name: value for name, value in ends.items() if not math.isnan(value)}
        measure = "latency" if unit == "ns" else unit
        metrics[row["name"]] = {measure: {"value": row["value"] * factor, **finite}}
    return metrics


def _pytest_benchmark(rows: Rows) -> Any:
    """What `--benchmark-json` of pytest-benchmark writes."""
    first = rows[0]
    host = (json.loads(first["environment"] or "{}")).get("host") or {}
    benchmarks = []
    for row in rows:
        axes = decode_axes(row[AXES])
        benchmarks.append(
            {
                "group": row["stage"],
                "name": row["name"],
                "fullname": row["name"],
                "params": axes or None,
                "param": ", ".join(f"{name}={value}" for name, value in axes.items()) or None,
                "extra_info": {name: row[name] for name in ("target", "jax", *PLACE)},
                "options": {"disable_gc": False, "timer": "perf_counter", "warmup": True},
                "stats": _pytest_statistics(_samples(row)),
            }
        )
    return {
        "machine_info": {
            "node": first["machine"],
            "machine": str(host.get("arch", "")),
            "system": str(host.get("system", "")),
            "python_implementation": "CPython",
            "python_version": first["python"],
            "cpu": {"brand_raw": str(host.get("cpu", "")), "count": host.get("cores") or 0},
        },
        "commit_info": {"id": first["commit"], "dirty": bool(first["dirty"])},
        "benchmarks": benchmarks,
        "datetime": _moment(first["started_at"]),
        "version": "5.2.3",
    }


def _pytest_statistics(samples: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(samples)
    several = len(ordered) > 1
    q1, median, q3 = (
        statistics.quantiles(ordered, n=4, method="inclusive") if several else ordered * 3
    )
    mean, stddev = statistics.fmean(ordered), statistics.stdev(ordered) if several else 0.0
    inner = [one for one in ordered if q1 - 1.5 * (q3 - q1) <= one <= q3 + 1.5 * (q3 - q1)]
    far = sum(abs(one - mean) > stddev for one in ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": stddev,
        "rounds": len(ordered),
        "median": median,
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": len(ordered) - len(inner),
        "stddev_outliers": far,
        "outliers": f"{far};{len(ordered) - len(inner)}",
        "ld15iqr": inner[0],
        "hd15iqr": inner[-1],
        "ops": 1 / mean if mean else 0.0,
        "total": math.fsum(ordered),
        "data": list(samples),
        "iterations": 1,
    }


_PYPERF_UNITS = {"seconds": "second", "bytes": "byte", "count": "integer"}


def _pyperf(rows: Rows) -> Any:
    """A suite of pyperf: a run per process."""
    benchmarks = []
    for row in rows:
        about = {"name": row["name"], "unit": _PYPERF_UNITS[row["unit"]], "loops": 1}
        labels = {"hostname": row["machine"], "commit": row["commit"], "jax": row["jax"]}
        metadata = about | {name: text for name, text in labels.items() if text}
        date = (
            {"date": _moment(row["started_at"])} if row["started_at"] == row["started_at"] else {}
        )
        runs = [{"metadata": date, "values": [value]} for value in _samples(row)]
        benchmarks.append({"metadata": metadata, "runs": runs})
    return {"version": "1.0", "metadata": {}, "benchmarks": benchmarks}


def _moment(when: Any) -> str:
    moment = datetime.fromtimestamp(0, UTC) if when != when else when.to_pydatetime()
    return str(moment.isoformat(sep=" "))


class Exchange(NamedTuple):
    """What a tool reads."""

    document: Callable[[Rows], Any]
    units: frozenset[str] | None = None
    """Of the values that it can hold; None for any."""
    above_0: bool = False
    """It holds no value that is 0 or less."""

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row can be written."""
        has_unit = self.units is None or row["unit"] in self.units
        return has_unit and not (self.above_0 and min(_samples(row)) <= 0)


FORMATS = {
    "benchmark-action": Exchange(_benchmark_action),
    "bencher": Exchange(_bencher),
    "pytest-benchmark": Exchange(_pytest_benchmark, frozenset({"seconds"}), above_0=True),
    "pyperf": Exchange(_pyperf, frozenset(_PYPERF_UNITS), above_0=True),
}


Tool = enum.StrEnum("Tool", ["benchmark-action", "bencher", "pytest-benchmark", "pyperf"])
"""Tools that have a row of :data:`FORMATS`."""


def document(frame: pd.DataFrame, tool: Tool) -> tuple[bytes, int, int]:
    """Return the rows of :func:`newest` as JSON, how many are in it, and how many it cannot hold.

    It is empty where it can hold none.
    """
    one = FORMATS[tool]
    rows = rows_of(newest(frame))
    held = [row for row in rows if one.holds(row)]
    text = msgspec.json.format(msgspec.json.encode(one.document(held)), indent=1) if held else b""
    return text, len(held), len(rows) - len(held)
