"""Leave in both arms only what a user asks for."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UsageError
from harness.frame.frame import axis_columns
from harness.verdicts.arms import Arm


def narrowed(
    arms: Sequence[Arm], select: Sequence[str], stages: Sequence[str], cases: Sequence[str]
) -> None:
    """Leave in both arms only some workloads and cases, and check that there are the stages.

    Rows of other stages stay, because they tell what the Python loop took.

    Args:
        arms: both, changed in place.
        select: regular expressions for the names of workloads.
        stages: names of stages.
        cases: `column=value` of axes, `transform`, `target`, `precision` or `scenario`; of several
            values of one column a row has one.

    Raises:
        UsageError: neither arm has any such row.
    """
    import pandas as pd

    from harness.frame.choose import narrow

    names = pd.concat([arm.rows[["workload", "stage"]] for arm in arms])
    workloads = set(narrow(names, select, latest=False)["workload"]) if select else None
    unknown = [stage for stage in stages if stage not in set(names["stage"])]
    if unknown:
        there = ", ".join(dict.fromkeys(names["stage"]))
        raise UsageError(f"No row has the stage {unknown[0]!r}. There are: {there}.")
    wanted: dict[str, set[str]] = {}
    for case in cases:
        name, value = _case(case, arms)
        wanted.setdefault(name, set()).add(value)
    for arm in arms:
        rows = arm.rows
        if workloads is not None:
            rows = rows[rows["workload"].isin(workloads)]
        for name, values in wanted.items():
            known = name in rows.columns
            rows = rows[rows[name].map(str).isin(values)] if known else rows.iloc[:0]
        arm.rows = rows
    if all(arm.rows.empty for arm in arms):
        said = [*select, *cases]
        raise UsageError(f"Neither arm has a row with {' and '.join(said)} together.")


def _case(text: str, arms: Sequence[Arm]) -> tuple[str, str]:
    name, sign, value = (part.strip() for part in text.partition("="))
    axes = [axis for arm in arms for axis in axis_columns(arm.rows)]
    known = list(dict.fromkeys((*axes, "transform", "target", "precision", "scenario")))
    if not sign or name not in known:
        raise UsageError(
            f"{text!r} is no case: expected AXIS=VALUE, with one of the axes {', '.join(known)}."
        )
    return name, value
