"""A comparison as people read it: worst first, what did not change only counted. Nothing prints."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from harness.errors import ExitCode
from harness.frame.frame import rows_of, stage_order
from harness.frame.tables import case_texts
from harness.records.units import counted, value_text
from harness.stages.registry import OF_CALLS, STAGES
from harness.verdicts import drift, loads, programs, rules
from harness.verdicts.error_rates import rates_text
from harness.verdicts.judge import COLUMNS

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison

SCHEMA = 1
"""Version of the layout of :func:`document`."""

MOST = {
    rules.SLOWER: 20,
    rules.MORE: 20,
    rules.FASTER: 5,
    rules.LESS: 5,
    rules.INCOMPARABLE: 1,
    **dict.fromkeys((rules.UNSURE, rules.SAME), 0),
}
"""Rows of a verdict that are listed, unless all are wanted or there are few; what is broken is
listed whole."""

FEW = 12
"""Rows that a reader takes in without an overview."""

COUNTED = (rules.SLOWER, rules.FASTER, rules.SAME, rules.UNSURE)

_PROGRAM = re.compile(r"; program: [^;]*")

HEADINGS = ("workload", "case", "stage", "A", "B", "B / A", "verdict", "reason")

LEGEND = (
    "A, B: seconds that are compared, geometric means over processes: of {calls} the least call, "
    "of {cpu} CPU time where it is known. B / A: above 1, B takes longer; {basis}; in brackets the "
    "95 % interval."
)

OTHER_UNITS = (
    "more, less: one value of each side in its own unit, as asv stored it, so no chance is known; "
    "as for asv, less is better."
)

BASES = {
    drift.OTHERS: "without what a process's other workloads share",
    drift.BY_LOOP: "without what a process's plain Python loop shows",
    drift.INTERLEAVED: "as measured, because the processes took turns",
    drift.RAW: "as measured",
    drift.WALL: "wall time as measured",
    drift.CALLS: "of what 90 % of calls do not exceed",
}


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison with what became slower first, and the largest change first."""
    place = frame["verdict"].map({name: n for n, name in enumerate(rules.VERDICTS)})
    size = -np.abs(np.log(frame["ratio"].to_numpy()))
    order = np.lexsort((np.where(np.isnan(size), np.inf, size), place.to_numpy()))
    return frame.iloc[order]


def heading(comparison: Comparison) -> str:
    """Return what is compared, in a line."""
    turns = ", processes taking turns" if comparison.interleaved else ""
    return f"A: {comparison.a.label} · B: {comparison.b.label}{turns}"


def warning_lines(comparison: Comparison) -> list[str]:
    """Return what changes the meaning of the numbers: a busy machine, and what it did by itself."""
    lines = []
    a, b = loads.of_arms(comparison.pairs)
    if (a.is_busy or b.is_busy) and not comparison.interleaved:
        text = f"Machine busy: {loads.text(a, b)}."
        if loads.unlike(a, b):
            command = f"`harness compare {comparison.a.text} {comparison.b.text} --live`"
            ends = {tuple(arm.where) for arm in (comparison.a, comparison.b)} == {("commit",)}
            turns = f"{command} measures both in turns" if ends else loads.TURNS
            text += f" The loads are unlike, so no row is decided by the clock; {turns}."
        lines.append(text)
    machine = comparison.frame[comparison.frame["cause"] == rules.MACHINE]
    if len(machine):
        ratio = math.exp(np.abs(np.log(machine["ratio"])).max())
        rows = counted(len(machine), "row")
        lines.append(f"In {rows} nothing differs, and {rules.machine_text(ratio, 'up to ')}.")
    return lines


def _each(texts: pd.Series[str]) -> list[str]:
    """Return the texts of a column, each once."""
    return [text for text in dict.fromkeys(texts) if text]


def overview(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text, a row per stage; without rows where the comparison is short.

    The mean of ratios is geometric, each case with the same weight. `in most` is the verdict on the
    stage as a whole, which rests on what most of its cases did.
    """
    known = frame[frame["ratio"].notna() & (frame["unit"] == rules.SECONDS)]
    rows = []
    for stage in sorted(set(known["stage"]), key=stage_order) if len(known) > FEW else ():
        own = known[known["stage"] == stage]
        mean = math.exp(np.log(own["ratio"]).mean())
        counts = [(own["verdict"] == verdict).sum() for verdict in COUNTED]
        whole = ", ".join(_each(own["stage_verdict"]))
        if whole and len(typical := set(own["stage_ratio"].dropna())) == 1:
            whole += f" ({typical.pop():.3f})"
        rows.append([stage, len(own), f"{mean:.3f}", whole, *counts])
    headings = ["stage", "cases", "mean B / A", "in most", *COUNTED]
    return pd.DataFrame(rows, columns=headings, dtype=object).astype("str")


def stage_lines(frame: pd.DataFrame) -> list[str]:
    """Return the stages of which all rows together, or some processes, became slower or faster."""
    keys = ["machine", "target", "scenario", "stage"]
    called = frame[frame["stage_verdict"].isin([rules.SLOWER, rules.FASTER])]
    called = called.drop_duplicates(keys)
    several = [name for name in keys[:-1] if frame[name].nunique() > 1]
    return [
        " · ".join([row["stage"], *(str(row[name]) for name in several)])
        + f" as a whole: {row['stage_verdict']}. {row['stage_reason']}."
        for row in rows_of(called)
    ]


def listed(frame: pd.DataFrame, every: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows to list, in order, and what is to be said of those left out."""
    frame = ordered(frame)
    if every:
        return frame, []
    short = len(frame) <= FEW
    most = frame["verdict"].map({rules.SAME: 0} if short else MOST).astype(float).fillna(math.inf)
    left_out = frame.groupby("verdict").cumcount() >= most
    said = [
        f"{count} more {verdict}" if MOST[verdict] else f"{count} {verdict}"
        for verdict, count in Counter(frame["verdict"][left_out]).items()
    ]
    return frame[~left_out], [f"Not listed: {', '.join(said)}; `--all` lists all."] if said else []


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text with :data:`HEADINGS`.

    Stages of a case that are broken or incomparable for one reason share a row. What differs in
    programs is told once a case (:func:`harness.verdicts.programs.changed_lines`).
    """
    rows: dict[tuple[Any, ...], list[str]] = {}
    for row, case in zip(rows_of(frame), cases(frame), strict=True):
        stage = row["stage"]
        values = (row["a_s"], row["b_s"])
        times = ["" if math.isnan(one) else value_text(one, row["unit"]) for one in values]
        texts = [row["workload"], case, stage, *times, ratio_text(row)]
        texts += [row["verdict"], _PROGRAM.sub("; another program", row["reason"])]
        if row["verdict"] not in (rules.INCOMPARABLE, rules.BROKEN):
            rows[len(rows), stage] = texts
            continue
        key = (row["machine"], row["workload"], case, row["reason"])
        if key in rows:
            rows[key][2] += f", {stage}"
            rows[key][3] = rows[key][4] = ""
        else:
            rows[key] = texts
    return pd.DataFrame(list(rows.values()), columns=list(HEADINGS), dtype="str")


def cases(frame: pd.DataFrame) -> list[str]:
    """Return each row's case as short text, with the machine where there are several."""
    axes = [name for name in frame.columns if name not in COLUMNS]
    return case_texts(frame, axes, scenario=True, machine="machine=")


def ratio_text(row: dict[str, Any]) -> str:
    """Return a ratio and its interval as text: `1.20 [1.15, 1.25]`; "" where there is none."""
    if math.isnan(row["ratio"]):
        return ""
    known = not math.isnan(row["low"])
    interval = f" [{row['low']:.3g}, {row['high']:.3g}]" if known else ""
    return f"{row['ratio']:.3g}{interval}"


def legend(comparison: Comparison) -> tuple[str, ...]:
    """Return what the columns of the table mean."""
    frame = comparison.frame
    told = {basis: BASES[basis] for basis in _each(frame["basis"])}
    if len(told) > 1:
        for basis in told:
            told[basis] += f" ({', '.join(_each(frame['stage'][frame['basis'] == basis]))})"
    on_cpu = [name for name, stage in STAGES.items() if stage.clock == "cpu"]
    said = LEGEND.format(
        calls=_listed(OF_CALLS), cpu=_listed(on_cpu), basis=", ".join(told.values())
    )
    lines = [said] if told else []
    if {rules.MORE, rules.LESS} & {*frame["verdict"]}:
        lines.append(OTHER_UNITS)
    return tuple(lines)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many rows have each verdict, in the order in which they are shown.

    What is broken is counted by case: a case that fails has lost all of its stages.
    """
    numbers = Counter(frame["verdict"])
    numbers[rules.BROKEN] = _n_cases(frame, frame["verdict"] == rules.BROKEN)
    return {verdict: numbers[verdict] for verdict in rules.VERDICTS}


def _n_cases(frame: pd.DataFrame, chosen: pd.Series[bool]) -> int:
    rows = frame[chosen]
    return len({*zip(rows["machine"], rows["workload"], cases(rows), strict=True)})


def summary_text(frame: pd.DataFrame) -> str:
    """Return the answer in a line: what broke, which stages moved, and how many rows did."""
    numbers = counts(frame)
    broken = numbers[rules.BROKEN]
    again = _n_cases(frame, frame["reason"].str.startswith(rules.WORKS_AGAIN))
    parts = [f"{broken} case{'' if broken == 1 else 's'} broken"] if broken else []
    moved = frame[frame["stage_verdict"].isin([rules.SLOWER, rules.FASTER])]
    for stage, verdict in dict.fromkeys(zip(moved["stage"], moved["stage_verdict"], strict=True)):
        parts.append(f"{stage} as a whole {verdict}")
    rows = ", ".join(
        f"{count} {verdict}"
        for verdict, count in numbers.items()
        if count and verdict != rules.BROKEN
    )
    parts += [rows] if rows else []
    if again:
        parts.append(f"{again} case{' works' if again == 1 else 's work'} again")
    known = (frame["fingerprint_a"] != "") & (frame["fingerprint_b"] != "")
    other = _n_cases(frame, known & (frame["fingerprint_a"] != frame["fingerprint_b"]))
    parts += [f"another program in {other} case{'' if other == 1 else 's'}"] if other else []
    return "; ".join(parts) or "nothing to compare"


def exit_code(frame: pd.DataFrame) -> ExitCode:
    """Return what `harness compare` ends with: by the rows that are shown, and their stages."""
    stages = {rules.SLOWER} & {*frame["stage_verdict"]}
    return rules.exit_code(stages | {*frame["verdict"]})


def footer(comparison: Comparison) -> list[str]:
    """Return how often verdicts are wrong on each machine; `harness aa` takes no arms in turns."""
    known = () if comparison.interleaved else sorted(comparison.rates.items())
    return [rates_text(rates, setting) for setting, rates in known]


def document(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for other programs.

    `schema`, `a` and `b` (what the arms are), `loads` (of A and of B: `cores`, how many of them
    `others` kept busy, and the load `average`; None where not known), `interleaved`, `answer`,
    `counts` of verdicts (`broken` counts cases), `stages` (in words, those that moved as a whole),
    `error_rates` by machine, effort and environment, as in `"box, effort default, ENV"` (None where
    not measured, and without what they hold of each case), `programs` that changed, a line each,
    and `rows`, worst first, with the columns of the frame.
    """
    rates = {}
    for setting, one in sorted(comparison.rates.items()):
        whole = msgspec.to_builtins(one) or {}
        rates[str(setting)] = {name: whole[name] for name in whole if name != "noise"} or None
    return {
        "schema": SCHEMA,
        "a": comparison.a.label,
        "b": comparison.b.label,
        "loads": [
            {name: None if value != value else value for name, value in one._asdict().items()}
            for one in loads.of_arms(comparison.pairs)
        ],
        "interleaved": comparison.interleaved,
        "answer": summary_text(comparison.frame),
        "counts": counts(comparison.frame),
        "stages": stage_lines(comparison.frame),
        "error_rates": rates,
        "programs": programs.changed(programs.by_case(comparison.pairs)),
        "rows": rows_of(ordered(comparison.frame)),
    }
