"""A comparison stage by stage: the first thing to read of one that has many rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.frame.frame import STAGE_ORDER
from harness.verdicts import rules

FEW = 12
"""Rows that a reader takes in without an overview."""

COUNTED = (rules.SLOWER, rules.FASTER, rules.SAME, rules.UNSURE)


def by_stage(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per stage, over the cases that were compared in it.

    Args:
        frame: from :func:`harness.compare`.

    Returns:
        `stage`; `cases`, how many; `ratio`, the geometric mean of their ratios b / a, each case
        with the same weight; how many are `slower`, `faster`, `same` and `unsure`. No row where
        nothing is comparable.
    """
    known = frame[frame["ratio"].notna()]
    rows = []
    for stage in sorted(known["stage"].unique(), key=_place):
        own = known[known["stage"] == stage]
        mean = float(np.exp(np.log(own["ratio"]).mean()))
        counts = [int((own["verdict"] == verdict).sum()) for verdict in COUNTED]
        rows.append((stage, len(own), mean, *counts))
    return pd.DataFrame(rows, columns=["stage", "cases", "ratio", *COUNTED])


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the overview as text; without rows where the comparison is short."""
    found = by_stage(frame)
    if found["cases"].sum() <= FEW:
        found = found.head(0)
    texts = found.assign(ratio=[f"{ratio:.3f}" for ratio in found["ratio"]])
    return texts.rename(columns={"ratio": "B / A, geometric mean"}).astype("str")


def _place(stage: str) -> tuple[int, str]:
    known = stage in STAGE_ORDER
    return (STAGE_ORDER.index(stage) if known else len(STAGE_ORDER), stage)
