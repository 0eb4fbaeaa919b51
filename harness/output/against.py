"""Comparisons as tables for people: one per workload, with what its words mean. Nothing prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from harness.frame.cases import case_texts
from harness.frame.frame import ORIGIN, axes_of_cases, origin_text, rows_of
from harness.frame.roofline import RESIDENT
from harness.records.units import counted, ratio_text, seconds_text, share_text

HEADINGS = (
    "case", "baseline", "threads", "XLA", "baseline's", "ratio", "launches", "bytes",
    "roofline", "pays after", "verdict",
)  # fmt: skip
"""Of the tables. Pairs stand as XLA | baseline."""

LEGEND = (
    "ratio: time of the baseline / time of XLA, with its 95 % interval; above 1 XLA is faster.",
    "XLA | baseline: launches (kernels, or array operations); bytes moved, in multiples of the "
    "least possible; share of the roofline reached.",
    "pays after: calls until XLA's compilation is paid back, cache cold | warm; never: XLA is "
    "slower.",
)


LABELS = {
    RESIDENT: "the inputs stay in a cache: the share of the roofline, if any, is of what such a "
    "cache gave the largest arrays, and may exceed 1",
    "host-bound": "the time is that of asking for the work, not of doing it",
    "disturbed": "something else used the machine while it was measured",
    "fuse-fallback": "cupy.fuse could not fuse it, and fell back on its slow path",
    "faster than the roofline": "a cache served the bytes, or not all of the work was done",
    "possible back-end regression": "XLA reaches less than 2 % of the roofline",
    "no ceilings": "no Ceilings workload was measured in the same sweep, so there is no roofline",
}
"""What the labels of a row mean, and the reason for which it may be rejected."""


def answer(frame: pd.DataFrame) -> str:
    """Return in one sentence in how many comparisons which side is faster."""
    often = frame["verdict"].str.partition(":")[0].value_counts()
    won, lost = often.get("XLA faster", 0), often.get("baseline faster", 0)
    rest = {"are unsure": often.get("unsure", 0), "have no ratio": often.get("no ratio", 0)}
    counts = ", ".join(f"{number} {what}" for what, number in rest.items() if number)
    counts = f"; {counts}".replace(" 1 are", " 1 is").replace(" 1 have", " 1 has") if counts else ""
    return (
        f"XLA is faster in {won} of {counted(len(frame), 'comparison')}, slower in {lost}{counts}."
    )


def tables(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a heading and a frame of text for each workload of each origin.

    `frame` is of :func:`harness.against_baseline`.
    """
    for origin, part in frame.groupby([*ORIGIN, "workload"]):
        *place, workload = map(str, origin)
        rows = [[case, *_texts(row)] for row, case in zip(rows_of(part), cases(part), strict=True)]
        heading = f"{workload} · {origin_text(dict(zip(ORIGIN, place, strict=True)))}"
        yield heading, pd.DataFrame(rows, columns=list(HEADINGS), dtype="str")


def without_empty_axes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without the axes that none of its workloads has."""
    return frame.drop(columns=[axis for axis in axes_of_cases(frame) if frame[axis].isna().all()])


def cases(frame: pd.DataFrame) -> list[str]:
    """Return the case of each row as short text."""
    return case_texts(frame, axes_of_cases(frame))


def places(frame: pd.DataFrame) -> list[str]:
    """Return the case of each row and its number of threads: `size=8, all threads`."""
    names = {"one": "one thread", "all": "all threads"}
    threads = [names.get(name, f"{name} thread") for name in frame["threads"]]
    return [", ".join(filter(None, pair)) for pair in zip(cases(frame), threads, strict=True)]


def _texts(row: dict[str, Any]) -> list[str]:
    ratio = ratio_text(row["ratio"])
    if not math.isnan(row["ratio_low"]):
        ratio += f" [{row['ratio_low']:.3g}, {row['ratio_high']:.3g}]"
    return [
        row["baseline"],
        row["threads"],
        _known(seconds_text, row["xla_s"]),
        _known(seconds_text, row["baseline_s"]),
        ratio,
        _known("{:.0f}".format, row["xla_launches"], row["baseline_launches"]),
        _known(ratio_text, row["xla_traffic"], row["baseline_traffic"]),
        _known(lambda share: share_text(share, 1), row["xla_fraction"], row["baseline_fraction"]),
        _known(
            lambda calls: "never" if math.isinf(calls) else f"{calls:.0f}",
            row["break_even_cold"],
            row["break_even_warm"],
        ),
        row["verdict"].partition(":")[0],
    ]


def _known(text: Callable[[float], str], *values: float) -> str:
    return " | ".join("–" if math.isnan(value) else text(value) for value in values)


def notes(frame: pd.DataFrame) -> list[str]:
    """Return lines under the tables: why there is no ratio, what is left out, what labels mean."""
    lines: dict[str, None] = {}
    used: dict[str, dict[str, None]] = {}
    for row, place in zip(rows_of(frame), places(frame), strict=True):
        where = f"{row['workload']}: {place}, {row['baseline']}"
        if row["reasons"]:
            kind = "no ratio: " if row["verdict"].startswith("no ratio") else ""
            lines[f"{where}: {kind}{row['reasons']}"] = None
        labels = [label for label in row["labels"].split("; ") if label]
        if "faster than the roofline" in row["verdict"]:
            labels.append("faster than the roofline")
        for label in labels:
            used.setdefault(label, {})[where] = None
    for label, rows in used.items():
        meaning = LABELS.get(label.rpartition(": ")[2], "")
        some = f"{len(rows)} rows" if len(rows) > _MOST else "; ".join(rows)
        lines[f"{label} ({some})" + (f": {meaning}." if meaning else "")] = None
    return list(lines)


_MOST = 2
"""Rows of a label that are named one by one."""
