"""How often a slow-down that was put in is found, when it is the only change among many rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.frame.frame import axis_column
from harness.verdicts.aa.effects import Effects
from harness.verdicts.aa.judging import CASE, case_rows, verdicts, without_fingerprints
from harness.verdicts.comparing import COLUMNS

if TYPE_CHECKING:
    import pandas as pd


def found_by_stage(
    identical: tuple[pd.DataFrame, pd.DataFrame], injected: pd.DataFrame, effects: Effects
) -> Iterator[tuple[str, bool]]:
    """Yield stage and whether it was called slower, of every row with a slow-down.

    Each such row is judged by itself in the family of rows that a user would see: all others are
    those of two identical arms. The arm with slow-downs was measured right after the second of
    these, which is what its row is held against.
    """
    import pandas as pd

    a, b, slow = map(without_fingerprints, (*identical, injected))
    rows_a, rows_b = case_rows(a), case_rows(b)
    for key, row in case_rows(slow).items():
        if row["stage"] not in effects or key not in rows_a or key not in rows_b:
            continue
        at_a, at_b = rows_a[key]["position"], rows_b[key]["position"]
        found = verdicts(
            pd.concat([a.drop(at_a), b.loc[[at_b]]], ignore_index=True),
            pd.concat([b.drop(at_b), slow.loc[[row["position"]]]], ignore_index=True),
        )
        yield row["stage"], _verdict_on(found, row) == "slower"


def _verdict_on(found: pd.DataFrame, row: dict[str, Any]) -> str:
    wanted = {column: row[column] for column in (*CASE, "stage")}
    wanted |= {axis_column(axis, COLUMNS): value for axis, value in row["axes"].items()}
    for judged in found.to_dict("records"):
        if all(judged[column] == value for column, value in wanted.items()):
            return str(judged["verdict"])
    return ""
