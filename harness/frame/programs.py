"""Which cases of a sweep share a program, and what forces a new one."""

from __future__ import annotations

from typing import Any

import pandas as pd

from harness.frame.cases import CASE, case_columns, case_texts, check, free_names, keys, measured
from harness.frame.choose import takes_frame
from harness.frame.frame import axis_columns
from harness.stages.registry import names as stage_names

STEPS = stage_names("build", "compile", where=lambda stage: stage.stacked)
"""The stages that build a program."""

SECONDS = (*(f"{stage}_s" for stage in STEPS), "build_s")
"""Columns of seconds; `build_s` is the sum of the others."""

_SWEEP = [name for name in CASE if name not in ("transform", "precision")]
"""What is equal in all cases of one sweep: between those, programs are compared."""

_CASES = ("case", "new_program", "same_program_as", "reason")


@takes_frame
def recompile_map(frame: pd.DataFrame) -> pd.DataFrame:
    """Return which cases of a workload XLA built the same program for, and which needed a new one.

    Nothing is measured: programs are equal where their fingerprints are. Whether JAX builds an
    equal program again depends on how it is called, which `harness profile` sees. Cases
    without a fingerprint are left out.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        A row per case, sweep by sweep, in the order of the frame: :data:`harness.frame.cases.CASE`,
        a column per axis, `case` (as text), `new_program`, `same_program_as` (an earlier case of
        the workload, else empty), `reason` (what is new against the earlier case most alike:
        `dtype: float32 → bfloat16`; `first call`; empty where nothing is new), `trace_s`,
        `lower_s`, `compile_s` (medians over processes, NaN where there is no such stage), their
        sum `build_s`, `fingerprint`.

    Raises:
        UsageError: this is no frame of results.
    """
    check(frame, "harness.recompile_map", ["fingerprint"])
    rows = measured(frame)
    rows = rows[rows["stage"].isin(STEPS)]
    axes = axis_columns(frame)
    rows = rows.assign(label=[text or "the only case" for text in case_texts(rows, axes)])
    differing = ["transform", "precision", *axes]
    names = free_names(axes, {*_CASES, *SECONDS})
    counted = []
    for _, sweep in rows.groupby(keys(rows, _SWEEP), sort=False):
        first: dict[str, str] = {}
        before: list[dict[str, Any]] = []
        for _, case in sweep.groupby(keys(sweep, case_columns(frame)), sort=False):
            row, seconds = case.iloc[0], dict(zip(case["stage"], case["value"], strict=True))
            fingerprint = max(case["fingerprint"])
            if not fingerprint or "compile" not in seconds:
                continue
            twin = first.get(fingerprint, "")
            first.setdefault(fingerprint, row["label"])
            # By repr, as NaN stands for an axis that both lack.
            changes: list[list[str]] = [
                [f"{n}: {old[n]} → {row[n]}" for n in differing if repr(old[n]) != repr(row[n])]
                for old in before
            ]
            before.append({name: row[name] for name in differing})
            nearest = min(changes, key=len) if changes else ["first call"]
            reason = "" if twin else "; ".join(nearest)
            counted.append(
                {name: row[name] for name in CASE}
                | {names.get(name, name): row[name] for name in axes}
                | dict(zip(_CASES, (row["label"], not twin, twin, reason), strict=True))
                | {f"{stage}_s": seconds.get(stage) for stage in STEPS}
                | {"build_s": sum(seconds.values()), "fingerprint": fingerprint}
            )
    columns = [*CASE, *(names.get(name, name) for name in axes), *_CASES, *SECONDS, "fingerprint"]
    table = pd.DataFrame(counted, columns=columns, dtype=object)
    text = dict.fromkeys((*CASE, "case", "same_program_as", "reason", "fingerprint"), "str")
    return table.astype({**text, **dict.fromkeys(SECONDS, "float64"), "new_program": bool})
