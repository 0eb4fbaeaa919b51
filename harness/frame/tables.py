"""Tables for people: one row per case, one column per stage. Nothing here prints."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from harness.frame.frame import INSTRUMENTS, axis_columns, ordinary
from harness.program.facts import FACTS, FIRST, TOTALS
from harness.records.units import scaled_text, seconds_text
from harness.stages.registry import CASE_STAGES, PROCESS_STAGES, names

_WORDS = {"failed": "failed", "skipped": "n/a", "refused": "refused"}
_CASE = ["machine", "commit", "env", "version", "effort", "dirty", "scenario"]
"""What may tell apart cases of one workload and equal axes."""


def stage_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per case with its workload, axes, and the time of each stage.

    `axes` also names what else tells apart two cases of the table (commit, effort, ...).
    Benchmarks that are not ours have a column of their own kind (`time`, `peakmem`, ...) behind.
    """
    frame = ordinary(frame)
    unshown = [*names("process", "reference"), *TOTALS]
    shown = frame[~frame["workload"].isin(INSTRUMENTS) & ~frame["stage"].isin(unshown)]
    texts = case_texts(shown)
    apart = _telling_apart(shown, texts)
    table: dict[tuple[Any, ...], dict[str, str]] = {}
    read = ["workload", *_CASE, "stage", "status", "value", "low", "high", "unit"]
    for text, *values in zip(texts, *(shown[column] for column in read), strict=True):
        row = dict(zip(read, values, strict=True))
        key = (text, row["workload"], *(row[column] for column in _CASE))
        if key not in table:
            others = [
                f"{column}={_short(column, row[column])}"
                for column in apart
                if (column, row[column]) != ("scenario", "off")
            ]
            axes = ", ".join(filter(None, [text, *others]))
            table[key] = {"workload": row["workload"], "axes": axes}
        table[key][row["stage"]] = cell_text(
            row["status"], row["value"], row["low"], row["high"], row["unit"]
        )
    stages = [*CASE_STAGES, *sorted(set(shown["stage"]) - set(CASE_STAGES))]
    columns = ["workload", "axes", *stages]
    rows = [[row.get(column, "") for column in columns] for row in table.values()]
    return pd.DataFrame(rows, columns=columns, dtype="str")


def _telling_apart(frame: pd.DataFrame, texts: list[str]) -> list[str]:
    if frame.empty:
        return []
    counts = frame.groupby([frame["workload"], pd.Series(texts, index=frame.index)])[
        _CASE
    ].nunique()
    return [column for column in _CASE if counts[column].max() > 1]


def _short(column: str, value: str) -> str:
    if column == "commit":
        return value[:8] or "none"
    return value or "none"


FACT_COLUMNS = tuple(fact.name for fact in FIRST if fact.column)
"""The facts that :func:`fact_table` shows."""


def fact_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per case with its workload, axes and the main facts.

    A fact that is not known is empty; rows from asv's own files are read as well as columns.
    """
    frame = ordinary(frame)
    shown = frame[~frame["workload"].isin(INSTRUMENTS)]
    texts = case_texts(shown)
    apart = [name for name in _telling_apart(shown, texts) if name != "scenario"]
    table: dict[tuple[Any, ...], dict[str, float]] = {}
    names = ["workload", *apart, "stage", "value", *FACT_COLUMNS]
    for text, *values in zip(texts, *(shown[name] for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        others = [f"{name}={_short(name, row[name])}" for name in apart]
        facts = table.setdefault((row["workload"], ", ".join(filter(None, [text, *others]))), {})
        if row["stage"] in FACT_COLUMNS:
            facts[row["stage"]] = row["value"]
        facts |= {name: row[name] for name in FACT_COLUMNS if not math.isnan(row[name])}
    rows = [
        [*case, *(count_text(facts.get(name, math.nan), name) for name in FACT_COLUMNS)]
        for case, facts in table.items()
    ]
    return pd.DataFrame(rows, columns=["workload", "axes", *FACT_COLUMNS], dtype="str")


def count_text(value: float, fact: str) -> str:
    """Return a fact as text: `12`, `3.2 MB`, `2.1 Gflop`; "" for NaN."""
    if math.isnan(value):
        return ""
    short = {"bytes": "B", "flops": "flop"}.get(FACTS[fact].unit, "")
    if not short:
        return f"{value:.0f}"
    return scaled_text(value, short)


def process_text(frame: pd.DataFrame) -> str:
    """Return in one line what a process paid once, or "" if that is not known."""
    known = frame[(frame["workload"] == "process") & (frame["status"] == "ok")]
    parts = []
    for stage in PROCESS_STAGES:
        rows = known[known["stage"] == stage]
        if not rows.empty:
            row = rows.sort_values("n_processes").iloc[-1]
            text = cell_text("ok", row["value"], row["low"], row["high"])
            parts.append(f"{stage} {text}")
    return "Once per process: " + ", ".join(parts) if parts else ""


def reason_texts(frame: pd.DataFrame, most: int = 10) -> list[str]:
    """Return a line for each reason why rows are not ok or leave something out, commonest first.

    A reason that several workloads share has one line.
    """
    noted = frame[frame["reason"] != ""]
    groups = noted.groupby(["status", "reason"], sort=False)["workload"]
    counts = groups.size().sort_values(ascending=False, kind="stable")
    names = groups.unique()
    lines = []
    for status, reason in list(counts.index)[:most]:
        first, *others = names[status, reason]
        more = f" and {len(others)} more" if others else ""
        lines.append(f"{first}{more}: {status}: {reason}")
    if len(counts) > most:
        lines.append(f"... and {len(counts) - most} more reasons: see the column `reason`")
    return lines


def case_texts(frame: pd.DataFrame) -> list[str]:
    """Return :func:`case_text` of each row."""
    axes = axis_columns(frame)
    columns = [frame[name] for name in ("precision", "transform", "target", *axes)]
    return [
        case_text(dict(zip(axes, values, strict=True)), transform, target, precision)
        for precision, transform, target, *values in zip(*columns, strict=True)
    ]


def case_text(axes: dict[str, Any], transform: str, target: str, precision: str = "") -> str:
    """Return a case as short text; an axis that it lacks and what is usual are left out."""
    parts = [f"{name}={value}" for name, value in axes.items() if not _is_missing(value)]
    if precision:
        parts.append(f"precision={precision}")
    if transform not in ("", "forward"):
        parts.append(f"transform={transform}")
    if target not in ("", "cpu"):
        parts.append(f"target={target}")
    return ", ".join(parts)


def _is_missing(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def cell_text(status: str, value: float, low: float, high: float, unit: str = "seconds") -> str:
    """Return a measurement as text, `4.1 ± 0.2 ms`, or in one word why there is none.

    What follows the ± is half of the interval of the median.
    """
    if status in _WORDS:
        return _WORDS[status]
    if math.isnan(value):
        return "n/a"
    half = (high - low) / 2
    if unit != "seconds":
        return f"{value:.4g} {unit}".rstrip()
    return seconds_text(value, None if math.isnan(half) else half)
