"""Verdicts of arms with their reasons in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from harness.output.verdicts import with_reasons
from harness.verdicts.judge import judged_arms
from harness.verdicts.table import table


def compare_arms(
    a: pd.DataFrame, b: pd.DataFrame, stages: tuple[str, ...] = (), **how: Any
) -> pd.DataFrame:
    """Return what :func:`harness.verdicts.compare_arms` does, with the reasons."""
    pairs, judged = judged_arms(a, b, **how)
    frame = with_reasons(table(pairs, judged), judged, pairs.pairs)
    return frame[frame["stage"].isin(stages)].reset_index(drop=True) if stages else frame
