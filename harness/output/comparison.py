"""A comparison as people read it: worst first, what did not change only counted. Nothing prints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from harness.frame.frame import place_text, rows_of, stage_order
from harness.output import programs
from harness.output.verdicts import (
    CLOCKS,
    IN_A_SENTENCE,
    TURNS,
    loads_text,
    machine_text,
    sentence,
)
from harness.records.units import counted, seconds_text, value_text
from harness.stages.registry import OF_CALLS
from harness.verdicts import loads, verdict
from harness.verdicts.error_rates import ErrorRates, Setting, total
from harness.verdicts.programs import by_case
from harness.verdicts.table import cases, counts, n_cases, ordered

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison
    from harness.verdicts.live.comparison import Rounds

SCHEMA = 2
"""Version of the layout of :func:`document`."""

MOST = {
    verdict.SLOWER: 20,
    verdict.MORE: 20,
    verdict.FASTER: 5,
    verdict.LESS: 5,
    verdict.INCOMPARABLE: 1,
    **dict.fromkeys((verdict.UNSURE, verdict.SAME), 0),
}
"""Rows of a verdict that are listed, unless all are wanted or there are few; what is broken is
listed whole."""

FEW = 12
"""Rows that a reader takes in without an overview."""

COUNTED = (verdict.SLOWER, verdict.FASTER, verdict.SAME, verdict.UNSURE)

HEADINGS = ("workload", "case", "stage", "A", "B", "B / A", "verdict", "reason")

LEGEND = (
    "A, B: geometric means over processes of what is compared, {clocks}.",
    "B / A: above 1, B takes longer{turns}; in brackets the 95 % interval, corrected for the rows "
    "of the stage where the row changes by its threshold.",
)

OTHER_UNITS = (
    "more, less: one value of each side in its own unit, so no chance is known; less is better."
)


def heading(comparison: Comparison) -> str:
    """Return what is compared, in a line."""
    turns = ", processes taking turns" if comparison.in_turns else ""
    return f"A: {comparison.pairs.a.label} · B: {comparison.pairs.b.label}{turns}"


_PROBLEMS: dict[str, Callable[..., str]] = {
    "variable": lambda name, value, arm, other: (
        f"{name}={value} did not reach JAX in arm {arm}: it has {other!r} there"
    ),
    "identical": lambda: (
        "both arms are identical: the same commit and working tree, and nothing that is recorded "
        "of their environments differs"
    ),
    "programs": lambda: "the arms' flags differ, but XLA built the same program for every case",
}


def rounds_lines(live: Rounds) -> Iterator[str]:
    """Yield what is to be known of the rounds of a comparison in turns, and where they are."""
    for code, *about in live.problems:
        yield _PROBLEMS[code](*about)
    rounds = f"{live.rounds} of at most {live.limit} rounds"
    more = "stopped; the same command continues: " if live.stopped else ""
    yield f"{more}{rounds} in {seconds_text(live.spent_s)}; records: {live.folder}"


def warning_lines(comparison: Comparison) -> list[str]:
    """Return what changes the meaning of the numbers: a busy machine, and what it did by itself."""
    lines = []
    a, b = loads.of_arms(comparison.pairs)
    if (a.is_busy or b.is_busy) and not comparison.in_turns:
        text = f"Machine busy: {loads_text(a, b)}."
        if loads.unlike(a, b):
            one, other = comparison.pairs.a, comparison.pairs.b
            arms, ends = f"{one.text} {other.text}", (*one.where, *other.where) == ("commit",) * 2
            turns = (
                f"`harness compare {arms}` in a terminal, or with --live, measures both in turns"
            )
            text += " The loads are unlike, so no row is decided by the clock; "
            text += f"{turns if ends else TURNS}."
        lines.append(text)
    frame = comparison.frame
    proven = frame[(frame["cause"] == verdict.MACHINE) & (frame["evidence"] == verdict.PROOF)]
    if len(proven):
        ratio = math.exp(np.abs(np.log(proven["clock_ratio"])).max())
        rows = counted(len(proven), "row")
        lines.append(f"In {rows} nothing differs, and {machine_text(ratio, 'up to ')}.")
    return lines


def left_out_lines(comparison: Comparison) -> list[str]:
    """Return which environments are not compared, and how to choose one."""
    places: Counter[tuple[str, str]] = Counter()
    for one in comparison.pairs.left_out:
        places[place_text(one.place), one.arms] += one.rows
    texts = [
        f"{place} ({counted(rows, 'row')}, {'in' if arms == 'both' else 'only in'} {arms})"
        for (place, arms), rows in places.items()
    ]
    return texts and [
        f"Left out, because another environment is compared: {', '.join(texts)}. An arm chooses: "
        "commit=1a2b3c4d,xla_flags=--xla_flag=1, or ...,env=NAME."
    ]


def _each(texts: pd.Series[str]) -> list[str]:
    """Return the texts of a column, each once."""
    return [text for text in dict.fromkeys(texts) if text]


def overview(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text, a row per stage; without rows where the comparison is short.

    The mean of ratios is geometric, each case with the same weight. `as a whole` is the verdict on
    the stage, which rests on what most of its cases did; left out where there is none.
    """
    timed = frame[frame["ratio"].notna() & (frame["unit"] == verdict.SECONDS)]
    rows = []
    for stage in sorted(set(timed["stage"]), key=stage_order) if len(timed) > FEW else ():
        own = timed[timed["stage"] == stage]
        mean = math.exp(np.log(own["ratio"]).mean())
        often = [(own["verdict"] == kind).sum() for kind in COUNTED]
        whole = ", ".join(_each(own["stage_verdict"]))
        if whole and len(typical := set(own["stage_ratio"].dropna())) == 1:
            whole += f" ({typical.pop():.3f})"
        rows.append([stage, len(own), f"{mean:.3f}", whole, *often])
    headings = ["stage", "cases", "mean B / A", "as a whole", *COUNTED]
    table = pd.DataFrame(rows, columns=headings, dtype=object).astype("str")
    return table if table["as a whole"].any() else table.drop(columns="as a whole")


def stage_lines(frame: pd.DataFrame) -> list[str]:
    """Return the stages of which all rows together, or some processes, became slower or faster."""
    keys = ["machine", "target", "scenario", "stage"]
    called = frame[frame["stage_verdict"].isin([verdict.SLOWER, verdict.FASTER])]
    called = called.drop_duplicates(keys)
    several = [name for name in keys[:-1] if frame[name].nunique() > 1]
    return [
        " · ".join([row["stage"], *(str(row[name]) for name in several)])
        + f" as a whole: {row['stage_verdict']}. {row['stage_reason']}."
        for row in rows_of(called)
    ]


def stages_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the stages that moved as a whole."""
    columns = ["machine", "target", "scenario", "stage", "stage_verdict", "stage_cause"]
    moved = frame[frame["stage_verdict"].isin(verdict.MOVED)]
    return rows_of(moved[[*columns, "stage_ratio"]].drop_duplicates(columns))


def listed(frame: pd.DataFrame, every: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows to list, in order, and what is to be said of those left out."""
    frame = ordered(frame)
    if every:
        return frame, []
    short = len(frame) <= FEW
    most = frame["verdict"].map({verdict.SAME: 0} if short else MOST).astype(float).fillna(math.inf)
    left_out = frame.groupby("verdict").cumcount() >= most
    numbers = [
        f"{count} more {IN_A_SENTENCE.get(kind, kind)}" if MOST[kind] else f"{count} {kind}"
        for kind, count in Counter(frame["verdict"][left_out]).items()
    ]
    return frame[~left_out], [
        f"Not listed: {', '.join(numbers)}; `--all` lists all."
    ] if numbers else []


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text with :data:`HEADINGS`.

    Stages of a case that are broken or incomparable for one reason share a row. What differs in
    programs is told once a case (:func:`harness.output.programs.changed_lines`).
    """
    rows: dict[tuple[Any, ...], list[str]] = {}
    for row, case in zip(rows_of(frame), cases(frame), strict=True):
        stage = row["stage"]
        values = (row["a_s"], row["b_s"])
        times = ["" if math.isnan(one) else value_text(one, row["unit"]) for one in values]
        texts = [row["workload"], case, stage, *times, ratio_text(row)]
        texts += [row["verdict"], row["reason"]]
        if row["verdict"] not in (verdict.INCOMPARABLE, verdict.BROKEN):
            rows[len(rows), stage] = texts
            continue
        key = (row["machine"], row["workload"], case, row["reason"])
        if key in rows:
            rows[key][2] += f", {stage}"
            rows[key][3] = rows[key][4] = ""
        else:
            rows[key] = texts
    return pd.DataFrame(list(rows.values()), columns=list(HEADINGS), dtype="str")


def ratio_text(row: dict[str, Any]) -> str:
    """Return a ratio and its interval as text: `1.20 [1.15, 1.25]`; "" where there is none."""
    if math.isnan(row["ratio"]):
        return ""
    is_range = row["low"] < row["high"]  # what was counted has no interval
    interval = f" [{row['low']:.3g}, {row['high']:.3g}]" if is_range else ""
    return f"{row['ratio']:.3g}{interval}"


def legend(comparison: Comparison) -> tuple[str, ...]:
    """Return what the columns of the table mean."""
    frame = comparison.frame
    clocks = [
        f"{CLOCKS[clock]} of {_listed(_each(frame['stage'][frame['clock'] == clock]))}"
        for clock in _each(frame["clock"])
    ]
    lines = []
    if clocks:
        least = [name for name in OF_CALLS if name in {*frame["stage"]}]
        calls = f" (of {_listed(least)} the least call)" if least else ""
        turns = "; the processes of both sides took turns" if comparison.in_turns else ""
        lines += [one.format(clocks=", ".join(clocks) + calls, turns=turns) for one in LEGEND]
    if {verdict.MORE, verdict.LESS} & {*frame["verdict"]}:
        lines.append(OTHER_UNITS)
    return tuple(lines)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def summary_text(frame: pd.DataFrame) -> str:
    """Return how many rows have which verdict in a line, what broke and which stages moved."""
    numbers = counts(frame)
    broken = numbers[verdict.BROKEN]
    again = n_cases(frame, frame["problem"] == "works again")
    parts = [f"{broken} case{'' if broken == 1 else 's'} broken"] if broken else []
    moved = frame[frame["stage_verdict"].isin([verdict.SLOWER, verdict.FASTER])]
    for stage, kind in dict.fromkeys(zip(moved["stage"], moved["stage_verdict"], strict=True)):
        parts.append(f"{stage} as a whole {kind}")
    rows = ", ".join(
        f"{count} {kind}" for kind, count in numbers.items() if count and kind != verdict.BROKEN
    )
    parts += [rows] if rows else []
    if again:
        parts.append(f"{again} case{' works' if again == 1 else 's work'} again")
    both = (frame["fingerprint_a"] != "") & (frame["fingerprint_b"] != "")
    other = n_cases(frame, both & (frame["fingerprint_a"] != frame["fingerprint_b"]))
    parts += [f"another program in {other} case{'' if other == 1 else 's'}"] if other else []
    return "; ".join(parts) or "nothing to compare"


def footer(comparison: Comparison) -> list[str]:
    """Return how often verdicts are wrong on each machine; `harness aa` takes no arms in turns."""
    settings = () if comparison.in_turns else sorted(comparison.rates.items())
    return [rates_text(rates, setting) for setting, rates in settings]


def rates_text(rates: ErrorRates | None, setting: Setting) -> str:
    """Return how often verdicts are wrong in a setting, and which slow-downs they find."""
    if rates is None:
        effort = "" if setting.effort == "default" else f" --effort {setting.effort}"
        return f"Error rates ({setting}): unknown; `harness aa --power{effort}` measures them."
    flagged, families = rates.flagged, total(rates.families.values())
    text = (
        f"Error rates ({setting}): identical arms were called different in {flagged.count} of "
        f"{flagged.of} rows (95 %: {flagged.low * 100:.2g} to {flagged.high * 100:.2g} %), in "
        f"{families.count} of {families.of} families."
    )
    power = [
        f"{one.stage} +{one.effect * 100:.3g} % in {one.found.count} of {one.found.of}"
        for one in rates.power
        if one.effort == rates.effort and one.found.of
    ]
    return f"{text} Slow-downs put in were found: {', '.join(power)}." if power else text


def document(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for other programs.

    `schema`, `a` and `b` (what the arms are), `loads` (of A and of B: `cores`, how many of them
    `others` kept busy, and the load `average`; None where not known), `in_turns`, `answer` (a
    sentence), `counts` of verdicts (`broken` counts cases), `stages` (those that moved as a whole),
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
        "a": comparison.pairs.a.label,
        "b": comparison.pairs.b.label,
        "loads": [
            {name: None if value != value else value for name, value in one._asdict().items()}
            for one in loads.of_arms(comparison.pairs)
        ],
        "in_turns": comparison.in_turns,
        "answer": f"{sentence(comparison)}.",
        "counts": counts(comparison.frame),
        "stages": stages_of(comparison.frame),
        "error_rates": rates,
        "programs": programs.changed(by_case(comparison.pairs)),
        "rows": rows_of(ordered(comparison.frame)),
    }
