"""Values that are not times: one number on each side, in one unit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.stages.registry import effect
from harness.verdicts.verdict import LESS, MORE, SAME, VALUE, Verdict

if TYPE_CHECKING:
    from harness.frame.pairs import Row


def by_value(a: Row, b: Row) -> Verdict:
    """Return the verdict on two values in one unit that is not a time: one number on each side."""
    least, (one, other) = effect(b["stage"]), (float(row["value"]) for row in (a, b))
    positive = one > 0 and other > 0
    ratio = other / one if positive else math.nan
    about = Verdict(SAME, evidence=VALUE, unit=b["unit"], a=one, b=other, ratio=ratio, effect=least)
    if one == other or (positive and max(ratio, 1 / ratio) < 1 + least):
        return about
    return replace(about, kind=MORE if other > one else LESS)
