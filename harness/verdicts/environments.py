"""What else differs between two arms: the environments in which they were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.frame.environment_difference import UNKNOWN, environment_difference
from harness.verdicts.pairing import comparable_rows

if TYPE_CHECKING:
    import pandas as pd

    from harness.verdicts.compare import Comparison


def differences(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, str]:
    """Return what differs from the environment of `a` to that of `b`, by machine.

    Where rows are of several environments of a machine, the newest row's counts. A machine that
    only one has, or where nothing that is recorded differs, is left out.
    """
    before, after = _newest(a), _newest(b)
    found = {
        machine: environment_difference(before[machine], after[machine])
        for machine in before
        if machine in after
    }
    return {machine: text for machine, text in found.items() if text not in ("", UNKNOWN)}


def environment_lines(comparison: Comparison) -> list[str]:
    """Return what differs between the environments of the arms, a line per machine."""
    found = differences(comparison.a.rows, comparison.b.rows)
    several = comparison.frame["machine"].nunique() > 1
    return [
        f"From A to B{f' on {machine}' if several else ''}: {text}."
        for machine, text in found.items()
    ]


def _newest(rows: pd.DataFrame) -> dict[str, str]:
    """Return the environment of each machine's newest row."""
    ours = comparable_rows(rows)
    ours = ours[ours["environment"].notna()].sort_values("started_at", kind="stable")
    last = ours.drop_duplicates("machine", keep="last")
    return dict(zip(last["machine"], last["environment"], strict=True))
