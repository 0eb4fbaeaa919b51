"""Verdicts as a frame: a row per case and stage, of codes and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.errors import ExitCode
from harness.frame.cases import case_texts
from harness.frame.differences import ARROW, UNKNOWN, environment_difference
from harness.frame.frame import axis_column, with_axes
from harness.frame.pairs import Pair, Pairs, either, is_broken
from harness.verdicts import verdict
from harness.verdicts.verdict import BROKEN, KINDS, SLOWER, exit_code

if TYPE_CHECKING:
    from harness.verdicts.judge import Judged

NAMES = ("machine", "workload", "version", "target", "transform", "precision", "scenario", "stage")
CODES = ("verdict", "evidence", "clock", "cause", "needs", "problem", "detail")
NUMBERS = (
    "a_s", "b_s", "ratio", "low", "high", "p", "p_adjusted", "effect", "clock_ratio",
    "others_a", "others_b", "stage_ratio",
)  # fmt: skip
COUNTS = ("n_a", "n_b")
COLUMNS = (
    *NAMES, "unit", *NUMBERS[:5], *CODES, *COUNTS, *NUMBERS[5:11], "fingerprint_a",
    "fingerprint_b", "also_differs", "stage_verdict", "stage_cause", "stage_ratio", "in_turns",
)  # fmt: skip
"""Columns of every comparison; one per axis stands behind `version`."""

WORDS = ("reason", "stage_reason")
"""Columns that :func:`harness.output.verdicts.with_reasons` adds."""


def table(pairs: Pairs, judged: Sequence[Judged]) -> pd.DataFrame:
    """Return the frame that :func:`harness.verdicts.compare_arms` describes, a row per pair."""
    axes = {axis: axis_column(axis, COLUMNS) for axis in pairs.axes}
    rows = []
    for pair, one in zip(pairs.pairs, judged, strict=True):
        named = {name: _joined(pair, name) for name in NAMES}
        own = {column: either(pair).get(axis, float("nan")) for axis, column in axes.items()}
        also = {"also_differs": _also_differs(pair, pairs.on)}
        rows.append({**named, **own, **_about(pair, one), **also})
    numbers = dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    kinds = dict.fromkeys(COLUMNS, "str") | numbers | {"in_turns": "bool"}
    return pd.DataFrame(rows, columns=with_axes(COLUMNS, axes.values()), dtype=object).astype(kinds)


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison with what became slower first, and the largest change first."""
    place = frame["verdict"].map({name: n for n, name in enumerate(KINDS)})
    size = -np.abs(np.log(frame["ratio"].to_numpy()))
    order = np.lexsort((np.where(np.isnan(size), np.inf, size), place.to_numpy()))
    return frame.iloc[order]


def cases(frame: pd.DataFrame) -> list[str]:
    """Return each row's case as short text, with the machine where there are several."""
    axes = [name for name in frame.columns if name not in COLUMNS and name not in WORDS]
    return case_texts(frame, axes, scenario=True, machine="machine=")


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many rows have each verdict, in the order in which they are shown.

    What is broken is counted by case: a case that fails has lost all of its stages.
    """
    numbers = Counter(frame["verdict"])
    numbers[BROKEN] = n_cases(frame, frame["verdict"] == BROKEN)
    return {kind: numbers[kind] for kind in KINDS}


def n_cases(frame: pd.DataFrame, chosen: pd.Series[bool]) -> int:
    """Return of how many cases some rows are."""
    rows = frame[chosen]
    return len({*zip(rows["machine"], rows["workload"], cases(rows), strict=True)})


def exit_code_of(frame: pd.DataFrame) -> ExitCode:
    """Return what `harness compare` ends with: by the rows that are shown, and their stages.

    More calls of Python, fewer than count in the stage's time, fail nothing.
    """
    stages = {SLOWER} & {*frame["stage_verdict"]}
    few = (frame["verdict"] == verdict.MORE) & (frame["evidence"] == verdict.COUNTS)
    return exit_code(stages | {*frame["verdict"].mask(few, verdict.SAME)})


def _about(pair: Pair, judged: Judged) -> dict[str, Any]:
    row, stage = judged
    a, b = pair
    values = [row.a, row.b]
    if not row.evidence:
        values = [one["value"] if one else float("nan") for one in pair]
    loads = row.loads or ()
    others = [one.others for one in loads] if loads else [float("nan")] * 2
    return {
        "unit": row.unit if row.evidence else _joined(pair, "unit"),
        **dict(zip(("a_s", "b_s"), values, strict=True)),
        **{name: getattr(row, name) for name in (*NUMBERS[2:8], *CODES[1:6], *COUNTS)},
        "verdict": row.kind,
        "detail": "; ".join(row.detail),
        "clock_ratio": row.machine,
        **dict(zip(("others_a", "others_b"), others, strict=True)),
        "fingerprint_a": a["fingerprint"] if a else "",
        "fingerprint_b": b["fingerprint"] if b else "",
        "stage_verdict": stage.kind,
        "stage_cause": stage.cause,
        "stage_ratio": stage.ratio,
        "in_turns": row.in_turns,
    }


def _joined(pair: Pair, name: str) -> str:
    a, b = pair
    if a is None or b is None or is_broken(b) or a[name] == b[name]:
        return str(either(pair)[name])
    return f"{a[name]}{ARROW}{b[name]}"


def _also_differs(pair: Pair, on: Collection[str]) -> str:
    """Return what differs between the rows of a pair besides the columns in `on`, in words.

    That is the machine, commit and effort, and whatever of the environment is recorded; "" where
    an arm has no row, or nothing differs.
    """
    a, b = pair
    if a is None or b is None:
        return ""
    parts = [
        f"{name} {a[name][:12] or 'none'}{ARROW}{b[name][:12] or 'none'}"
        for name in ("machine", "commit", "effort")
        if name not in on and a[name] != b[name]
    ]
    environment = environment_difference(a["environment"], b["environment"], frozenset(on))
    return ", ".join([*parts, *([environment] if environment not in ("", UNKNOWN) else [])])
