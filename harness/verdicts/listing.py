"""A comparison as people read it: worst first, what did not change only counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.tables import case_text, seconds_text
from harness.verdicts import rules
from harness.verdicts.compare import Comparison
from harness.verdicts.stored_rates import rates_text

MOST = {rules.SLOWER: 40, rules.FASTER: 40, rules.UNSURE: 10, rules.INCOMPARABLE: 10, rules.SAME: 0}
"""Rows of a verdict that are listed, unless all are wanted."""

HEADINGS = ("workload", "case", "stage", "A", "B", "B / A", "verdict", "reason")

LEGEND = (
    "A, B: medians over processes, as measured. B / A: above 1, B takes longer; {basis}; in "
    "brackets the 95 % interval."
)

STORED = "calibrated by a reference in the same process unless marked raw"

TURNS = "as measured, because the processes took turns"

ACROSS = (
    "Across machines, raw seconds are compared: a verdict is on machine and program together. "
    "Calibrated: B / A once each side is divided by the reference of its own machine, so without "
    "the general speed of the machines; it is not tested.",
)


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison with what became slower first, and the largest change first."""
    place = frame["verdict"].map({name: n for n, name in enumerate(rules.VERDICTS)})
    size = -np.abs(np.log(frame["ratio"].to_numpy()))
    order = np.lexsort((np.where(np.isnan(size), np.inf, size), place.to_numpy()))
    return frame.iloc[order]


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many rows have each verdict, in the order in which they are shown."""
    found = Counter(frame["verdict"])
    return {verdict: found[verdict] for verdict in rules.VERDICTS}


def summary_text(frame: pd.DataFrame) -> str:
    """Return in a line how many rows have which verdict."""
    parts = [f"{count} {verdict}" for verdict, count in counts(frame).items() if count]
    environment = int((frame["cause"] == "environment").sum())
    if environment:
        parts = [
            f"{part} ({environment} changed with an equal program)"
            if part.endswith("unsure")
            else part
            for part in parts
        ]
    return ", ".join(parts) or "nothing to compare"


def heading(comparison: Comparison) -> str:
    """Return what is compared, in a line."""
    turns = ", processes taking turns" if comparison.interleaved else ""
    across = ", ACROSS MACHINES" if comparison.across else ""
    return f"A: {comparison.a.label} · B: {comparison.b.label}{turns}{across}"


def across_lines(comparison: Comparison) -> list[str]:
    """Return how the machines differ that were compared with each other; [] if none were."""
    if not comparison.across:
        return []
    said = [f"Across machines: {text}." for text in found_across(comparison.frame)]
    return said or ["Across machines: no row is; both arms are of one machine, or nothing fits."]


def found_across(frame: pd.DataFrame) -> list[str]:
    """Return the differences between machines that rows name, each once."""
    return [text for text in dict.fromkeys(frame["across"]) if text]


def legend(comparison: Comparison) -> tuple[str, ...]:
    """Return what the columns of the table mean."""
    said = LEGEND.format(basis=TURNS if comparison.interleaved else STORED)
    return (said, *(ACROSS if comparison.across else ()))


def footer(comparison: Comparison) -> list[str]:
    """Return how often verdicts are wrong on each machine."""
    return [rates_text(rates, machine) for machine, rates in sorted(comparison.rates.items())]


def listed(frame: pd.DataFrame, every: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows to list, in order, and what is to be said of those left out."""
    frame = ordered(frame)
    if every:
        return frame, []
    rank = frame.groupby("verdict").cumcount()
    left_out = rank >= frame["verdict"].map(MOST)
    counts = Counter(frame["verdict"][left_out])
    said = [
        f"{count} more {verdict}" if MOST[verdict] else f"{count} {verdict}"
        for verdict, count in counts.items()
    ]
    return frame[~left_out], [f"Not listed: {', '.join(said)}; `--all` lists all."] if said else []


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of text with :data:`HEADINGS`.

    Stages of a case that are incomparable for one reason share a row.
    """
    rows: dict[tuple[Any, ...], list[str]] = {}
    for row, case in zip(rows_of(frame), case_texts(frame), strict=True):
        stage, ratio = row["stage"], ratio_text(row)
        texts = [row["workload"], case, stage, _time(row["a_s"]), _time(row["b_s"]), ratio]
        texts += [row["verdict"], row["reason"]]
        if row["verdict"] != rules.INCOMPARABLE:
            rows[len(rows), stage] = texts
            continue
        key = (row["machine"], row["workload"], case, row["reason"])
        if key in rows:
            rows[key][2] += f", {stage}"
            rows[key][3] = rows[key][4] = ""
        else:
            rows[key] = texts
    return pd.DataFrame(list(rows.values()), columns=list(HEADINGS), dtype="str")


def axes_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a comparison that hold axes."""
    names = [str(name) for name in frame.columns]
    return names[names.index("version") + 1 : names.index("target")]


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def case_texts(frame: pd.DataFrame) -> list[str]:
    """Return each row's case as short text, with the machine where there are several."""
    several = frame["machine"].nunique() > 1
    axes = axes_of(frame)
    return [_case_text(row, axes, several) for row in rows_of(frame)]


def _case_text(row: dict[str, Any], axes: list[str], several: bool) -> str:
    known = {axis: row[axis] for axis in axes}
    parts = [case_text(known, row["transform"], row["target"], row["precision"])]
    if row["scenario"] not in ("", "off"):
        parts.append(f"scenario={row['scenario']}")
    if several:
        parts.append(f"machine={row['machine']}")
    return ", ".join(filter(None, parts))


def ratio_text(row: dict[str, Any]) -> str:
    """Return a ratio and its interval as text: `1.20 [1.15, 1.25]`; "" where there is none.

    Across machines the ratio of the calibrated values stands behind it.
    """
    if np.isnan(row["ratio"]):
        return ""
    known = not np.isnan(row["low"])
    interval = f" [{row['low']:.3g}, {row['high']:.3g}]" if known else ""
    known = not np.isnan(row["calibrated_ratio"])
    calibrated = f", {row['calibrated_ratio']:.3g} calibrated" if known else ""
    return f"{row['ratio']:.3g}{interval}{' raw' if row['basis'] == 'raw' else ''}{calibrated}"


def _time(value_s: float) -> str:
    return "" if np.isnan(value_s) else seconds_text(value_s)
