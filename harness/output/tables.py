"""Tables for people: one row per case, one column per stage. Nothing here prints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.cases import case_texts, full_names
from harness.frame.frame import INSTRUMENTS, ORIGIN, axis_columns, ordinary, rows_of, stage_order
from harness.program.facts import FACTS, FIRST, TOTALS
from harness.records.units import counted, scaled_text, seconds_text, share_text
from harness.stages.registry import (
    CASE,
    OF_CALLS,
    OWN_PROGRAM,
    PROCESS_STAGES,
    names,
)

_WORDS = {"failed": "failed", "skipped": "n/a", "refused": "refused"}
_CASE = ["machine", "commit", "env", "version", "effort", "dirty", "scenario"]
"""What may tell apart cases of one workload and equal axes."""
_PROCESS = names("process", "reference")
"""Stages that are of no case."""

CALLED = names("run")
"""Stages that call the program."""


_MOST = 10
"""Lines of one kind below a table."""

FEW_STAGES = 3
"""A reason that is of so many stages names them."""


def stage_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per case with its workload, axes, and the time of each stage.

    Of stages that no case has a time of those are shown that every case goes through.
    The time of a call is the median of calls; `≥` stands before the least, where no more is known.
    `axes` also names what else tells apart two cases of the table (commit, effort, ...).
    Benchmarks that are not ours have a column of their own kind (`time`, `peakmem`, ...) behind.
    """
    frame = typical(ordinary(frame))
    shown = _labelled(frame[~frame["stage"].isin([*_PROCESS, *TOTALS])], _CASE)
    cells = zip(*(shown[name] for name in ("status", "value", "low", "high", "unit")), strict=True)
    texts = pd.Series([cell_text(*cell) for cell in cells], shown.index, dtype="str")
    stages = sorted(set(shown["stage"]), key=stage_order)
    shown = shown.assign(text=("≥ " + texts).where(_is_least(shown), texts))
    table = _by_case(shown, ["workload", "axes", *_CASE], "text", stages).reset_index()
    table = table[["workload", "axes", *stages]].astype(object).fillna("").astype("str")
    usual = names(*CASE, where=lambda stage: stage.stacked)
    empty = [stage for stage in stages if set(table[stage]) <= {"", _WORDS["skipped"]}]
    return table.drop(columns=[stage for stage in empty if stage not in usual])


def workload_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per workload with the median over its cases of each stage."""
    timed = typical(ordinary(frame))
    timed = timed[timed["stage"].isin(names(*CASE, where=lambda stage: stage.stacked))]
    timed = timed[~timed["workload"].isin(INSTRUMENTS) & (timed["unit"] == "seconds")]
    case = [*axis_columns(timed), "transform", "target", "precision", "scenario"]
    cases = timed.drop_duplicates(["workload", *case]).groupby("workload", sort=False).size()
    of = timed.groupby(["workload", "stage"], sort=False)["value"].median().unstack()
    stages = sorted(of.columns[of.notna().any()], key=stage_order)
    texts = {stage: [_known(value, seconds_text) for value in of[stage]] for stage in stages}
    table = pd.DataFrame(texts, of.index).reindex(cases.index)
    table.insert(0, "cases", cases.astype("str"))
    return table.reset_index()


def compile_texts(frame: pd.DataFrame, most: int, least_s: float = 0.0) -> list[str]:
    """Return a line for each of the slowest compiles, of `least_s` at least, each case once."""
    slow = frame[(frame["stage"] == "compile") & (frame["value"] > least_s)]
    slow = slow[~slow["workload"].isin(INSTRUMENTS)].sort_values("value", ascending=False)
    slowest: dict[str, float] = {}  # a case may be there in several scenarios
    for name, value in zip(full_names(slow), slow["value"], strict=True):
        slowest.setdefault(name, value)
    named = itertools.islice(slowest.items(), most)
    return [f"{name}: compile takes {seconds_text(value)}" for name, value in named]


_PARTS = names(*CASE, "load")
"""Stages that no other stage of a case is a part of."""


def longest_text(frame: pd.DataFrame) -> str:
    """Return in a sentence or two which stage takes longest, and where most; and what failed.

    Stages that consist of others (`first_call`, `start`) and benchmarks that are not ours are told
    of where there is nothing else.
    """
    shown = typical(ordinary(frame))
    shown = shown[~shown["stage"].isin([*_PROCESS, *TOTALS])].reset_index(drop=True)
    shown = _labelled(shown.assign(mark=np.where(_is_least(shown), "≥ ", "")), _CASE)
    failed = int(shown["status"].isin(("failed", "refused")).sum())
    more = f" {counted(failed, 'row')} failed or refused; the reasons are below." * bool(failed)
    timed = shown[(shown["status"] == "ok") & (shown["unit"] == "seconds")]
    timed = timed[timed["value"].notna()]
    parts = timed[timed["stage"].isin(_PARTS)]
    timed = timed if parts.empty else parts
    if timed.empty:
        return f"No case has a time.{more}"
    case = timed.groupby([*ORIGIN, "workload", "axes", "scenario", "version"], dropna=False)
    longest = timed.loc[case["value"].idxmax()].sort_values("value", ascending=False)
    most, *others = rows_of(longest)
    stages = list(longest["stage"])
    if timed["stage"].nunique() == 1:
        among = f", of {len(stages)} cases" if others else ""
        return f"{most['stage']} takes most in {_where(most)}{among}.{more}"
    stage = max(stages, key=stages.count)
    among = f" in {stages.count(stage)} of {len(stages)} cases, most" if others else ""
    own = next(row for row in (most, *others) if row["stage"] == stage)
    text = f"{stage} takes longest{among} in {_where(own)}."
    if most["stage"] != stage:
        text += f" The longest of all is {most['stage']} of {_where(most)}."
    return text + more


def _where(row: Mapping[str, Any]) -> str:
    time = f"{row['mark']}{seconds_text(row['value'])}"
    return f"{row['workload']} {row['axes']}".rstrip() + f": {time}"


def typical(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the median of calls as `value`, `low` and `high`, where it is known."""
    shown = {"value": "p50", "low": "p50_low", "high": "p50_high"}
    has_median = frame["p50"].notna()
    texts = {name: frame[name].where(~has_median, frame[other]) for name, other in shown.items()}
    return frame.assign(**texts)


def _is_least(frame: pd.DataFrame) -> pd.Series[bool]:
    """Tell of each row whether no more is known of its calls than the least."""
    return frame["stage"].isin(OF_CALLS) & frame["value"].notna() & frame["p50"].isna()


def call_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per case and stage that makes calls, and how long they took.

    `calls/s` are those of one after another: 1 / the median, or of calls in flight.
    """
    shown = ordinary(frame)
    shown = _labelled(shown[shown["stage"].isin(CALLED) & (shown["status"] == "ok")], _CASE)
    median = shown["p50"].where(shown["stage"].isin(OF_CALLS), shown["value"])
    least = shown["least"].where(~_is_least(shown), shown["value"])
    times = {"least": least, "10 %": shown["p10"], "median": median, "90 %": shown["p90"]}
    texts = {name: [_known(value, seconds_text) for value in of] for name, of in times.items()}
    texts["calls/s"] = [_known(1 / value, "{:,.0f}".format) for value in median]
    texts["calls"] = [_known(value, "{:,.0f}".format) for value in shown["n_calls"]]
    columns = {name: column for name, column in texts.items() if any(column)}
    return shown[["workload", "axes", "stage"]].assign(**columns)


def _known(value: float, text: Callable[[float], str]) -> str:
    return "" if math.isnan(value) else text(value)


def program_texts(frame: pd.DataFrame) -> list[str]:
    """Return a line for each stage of a case inside of which whole programs were built."""
    built = frame[frame["programs"].notna()]
    lines = [
        f"{name}: {row['stage']} {seconds_text(row['value'])}, of which "
        f"{counted(round(row['programs']), 'program')} {seconds_text(row['programs_s'])}"
        for row, name in zip(rows_of(built), full_names(built, scenario=True), strict=True)
    ]
    left = len(lines) - _MOST
    return lines[:_MOST] + [f"... and {left} more: see the column `programs`"] * (left > 0)


def _labelled(frame: pd.DataFrame, apart: list[str]) -> pd.DataFrame:
    """Return the rows of cases with `axes`: text, with those of `apart` that tell cases apart."""
    shown = frame[~frame["workload"].isin(INSTRUMENTS)]
    shown = shown.assign(axes=pd.Series(case_texts(shown), shown.index, dtype="str"))
    counts = shown.groupby(["workload", "axes"])[apart].nunique().max()
    for column in [name for name in apart if counts[name] > 1]:
        label = shown[column].str[:8] if column == "commit" else shown[column]
        label = f", {column}=" + label.where(label != "", "none")
        if column == "scenario":
            label = label.where(shown[column] != "off", "")
        shown["axes"] = (shown["axes"] + label).str.removeprefix(", ")
    return shown


def _by_case(
    rows: pd.DataFrame, case: list[str], values: str, stages: Sequence[str]
) -> pd.DataFrame:
    """Return a row per case, in the order of the rows, and a column per stage."""
    last = rows.drop_duplicates([*case, "stage"], keep="last")
    wide = last.pivot(index=case, columns="stage", values=values).reindex(columns=list(stages))
    return wide.reindex(pd.MultiIndex.from_frame(rows[case].drop_duplicates()))


FACT_COLUMNS = tuple(fact.name for fact in FIRST if fact.column)
"""The facts that :func:`fact_table` shows."""


def fact_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text: a row per case with its workload, axes and the main facts.

    A fact that is not known is empty; rows from asv's own files are read as well as columns.
    """
    frame = ordinary(frame[~frame["stage"].isin(OWN_PROGRAM)])
    shown = _labelled(frame, [name for name in _CASE if name != "scenario"])
    case = ["workload", "axes"]
    rows = _by_case(shown, case, "value", FACT_COLUMNS)
    columns = shown.groupby(case, sort=False)[list(FACT_COLUMNS)].last()
    facts = columns.combine_first(rows).reindex(rows.index)
    texts = {name: [count_text(value, name) for value in facts[name]] for name in FACT_COLUMNS}
    return facts[list(FACT_COLUMNS)].assign(**texts).reset_index().astype("str")


def count_text(value: float, fact: str) -> str:
    """Return a fact as text: `12`, `3.2 MB`, `2.1 Gflop`; "" for NaN."""
    if math.isnan(value):
        return ""
    short = {"bytes": "B", "flops": "flop"}.get(FACTS[fact].unit, "")
    return scaled_text(value, short) if short else f"{value:.0f}"


def process_text(frame: pd.DataFrame) -> str:
    """Return in one line what a process paid once, or "" if that is not known."""
    own = frame[(frame["workload"] == "process") & (frame["status"] == "ok")]
    parts = []
    for stage in PROCESS_STAGES:
        rows = own[own["stage"] == stage]
        if not rows.empty:
            row = rows.sort_values("n_processes").iloc[-1]
            text = cell_text("ok", row["value"], row["low"], row["high"])
            parts.append(f"{stage} {text}")
    return "Once per process: " + ", ".join(parts) if parts else ""


def collected_text(frame: pd.DataFrame) -> str:
    """Return in one line what Python's garbage collector took of first calls, "" if unknown."""
    rows = frame[(frame["stage"] == "first_call") & (frame["status"] == "ok")]
    share = (rows["collected_s"] / rows["value"]).dropna()
    if share.empty:
        return ""
    most = rows.loc[[share.idxmax()]]
    (name,), (taken,) = full_names(most, scenario=True), most["collected_s"]
    middle, largest = share_text(share.median(), 1), share_text(share.max(), 1)
    return (
        f"Of first_call, Python's garbage collector took {middle} (median over cases), at most "
        f"{largest} ({seconds_text(taken)}, {name})."
    )


def reason_texts(frame: pd.DataFrame) -> list[str]:
    """Return a line for each reason why rows are not ok or leave something out, commonest first.

    A reason that several workloads share has one line. The stages are named where it is of three or
    fewer, and the case where it is of one.
    """
    noted = frame[frame["reason"] != ""]
    noted = noted.assign(case=case_texts(noted, scenario=True))
    parts = sorted(noted.groupby(["status", "reason"], sort=False), key=lambda one: -len(one[1]))
    lines = []
    for (status, reason), part in parts[:_MOST]:
        first, *others = part["workload"].unique()
        cases = part["case"].unique()
        stages = part["stage"].unique()
        name = f"{first} {cases[0]}".rstrip() if len(cases) == 1 and not others else first
        more = f" and {len(others)} more" if others else ""
        where = f", {', '.join(stages)}" if len(stages) <= FEW_STAGES else ""
        text = reason if status == "ok" else f"{status}: {reason}"
        lines.append(f"{name}{more}{where}: {text}")
    if (left := len(parts) - _MOST) > 0:
        lines.append(f"... and {left} more reasons: see the column `reason`")
    return lines


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
