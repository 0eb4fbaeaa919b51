"""What else differs between two arms: the environments in which they were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.analysis.environment_difference import UNKNOWN, environment_difference
from harness.analysis.verdicts.pairing import comparable_rows

if TYPE_CHECKING:
    import pandas as pd

    from harness.analysis.verdicts.compare import Comparison


def environment_lines(comparison: Comparison) -> list[str]:
    """Return what differs from the environment of A to that of B, a line per machine.

    Where an arm has rows of several environments of a machine, the newest row's counts. Nothing
    is said of a machine that only one arm has, or where nothing that is recorded differs.
    """
    before, after = (_newest(arm.rows) for arm in (comparison.a, comparison.b))
    shared = [machine for machine in before if machine in after]
    found = {machine: environment_difference(before[machine], after[machine]) for machine in shared}
    known = {machine: text for machine, text in found.items() if text not in ("", UNKNOWN)}
    return [
        f"From A to B{f' on {machine}' if len(shared) > 1 else ''}: {text}."
        for machine, text in known.items()
    ]


def _newest(rows: pd.DataFrame) -> dict[str, str]:
    """Return the environment of each machine's newest row."""
    ours = comparable_rows(rows)
    ours = ours[ours["environment"].notna()].sort_values("started_at", kind="stable")
    last = ours.drop_duplicates("machine", keep="last")
    return dict(zip(last["machine"], last["environment"], strict=True))
