"""What two arms built, case by case: programs that changed, and what counts prove. No times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness.frame.differences import facts_difference
from harness.frame.frame import axes_key, axis_column, rows_of
from harness.frame.pairs import CASE, Pair, Pairs, axes_of, either
from harness.stages.registry import STAGES
from harness.verdicts import counts, rules, verdict

NO_RISE = "no rise"
"""The calls of both arms were counted, and prove nothing: never that nothing became slower."""

VERDICTS = (verdict.BROKEN, verdict.SLOWER, verdict.FASTER, verdict.INCOMPARABLE, NO_RISE)
"""In the order in which they are shown."""

_NAMES = ("machine", *(name for name in CASE if name != "stage"))

_CALLS = tuple(stage.counted for stage in STAGES.values() if stage.counted)

COLUMNS = (
    *_NAMES,
    *(f"{fact}_{side}" for fact in _CALLS for side in "ab"),
    "verdict", "proven", "problem", "detail", "program",
)  # fmt: skip
"""Columns of :func:`by_case`; one per axis stands behind them."""

UNTOLD = "no total differs"
"""The difference of two programs whose facts are equal, or not known."""


def by_case(pairs: Pairs) -> pd.DataFrame:
    """Return what counts say of each case of two arms, a row per case.

    Returns:
        `machine`, `workload`, `target`, `transform`, `precision`, `scenario`; float64
        `trace_calls_a`, `trace_calls_b`, `lower_calls_a`, `lower_calls_b`, NaN where not counted;
        `verdict`: `slower` or `faster`, proven by counts, `no rise`, `broken` (ok in A, failed in
        B) or `incomparable`; `proven`: the stages that counts prove so, joined by `, `; `problem`
        and `detail`: why not, as in a row of :func:`harness.verdicts.compare_arms`; `program`: what
        differs in the facts of the programs, "" where they are equal or one is not known; and a
        column per axis.
    """
    cases: dict[tuple[Any, ...], list[Pair]] = {}
    for one in pairs.pairs:
        row = either(one)
        key = (*(row[name] for name in _NAMES), axes_key(axes_of(row, pairs.axes)))
        cases.setdefault(key, []).append(one)
    axes = {axis_column(axis, COLUMNS): axis for axis in pairs.axes}
    rows = []
    for own in cases.values():
        row = either(own[0])
        own_axes = {name: row.get(axis) for name, axis in axes.items()}
        rows.append({name: row[name] for name in _NAMES} | _about(own) | own_axes)
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *axes], dtype=object)
    return frame.astype({name: float if "_calls_" in name else "str" for name in COLUMNS})


def _about(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return what is known of one case, of the pairs of its stages."""
    other = (
        facts_difference(a, b) or UNTOLD
        for a, b in pairs
        if a and b and rules.program_of(a, b) == "differs"
    )
    about: dict[str, Any] = {"program": next(other, "")}
    for fact in _CALLS:
        for number, side in enumerate("ab"):
            values = (row.get(fact) for row in (pair[number] for pair in pairs) if row)
            counted = (one for one in values if one is not None and one == one)
            about[f"{fact}_{side}"] = next(counted, None)
    kind, proofs, problem = _verdict(pairs)
    return about | {
        "verdict": kind,
        "proven": ", ".join(one.stage for one in proofs),
        "problem": problem[0] if problem else "",
        "detail": "; ".join(problem[1:]),
    }


def _verdict(pairs: Sequence[Pair]) -> tuple[str, list[counts.Proof], tuple[str, ...]]:
    """Return the verdict, what proves it, and why there is none: a code and what belongs to it."""
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both:
        return verdict.INCOMPARABLE, [], ("only in", "B" if pairs[0][0] is None else "A")
    for a, b in both:
        if a["status"] == "ok" and b["status"] in ("failed", "refused"):
            return verdict.BROKEN, [], ("fails", b["status"], b["reason"])
        if a["version"] != b["version"]:
            return verdict.INCOMPARABLE, [], ("version", a["version"], b["version"])
    proofs = [proof for a, b in both if (proof := counts.proof(a, b))]
    if proofs:
        rose = any(proof.rose for proof in proofs)
        return verdict.SLOWER if rose else verdict.FASTER, proofs, ()
    unknown = next(filter(None, (counts.unknown(a, b) for a, b in both)), ())
    return verdict.INCOMPARABLE if unknown else NO_RISE, [], unknown


def document(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the cases for other programs: `schema`, `counts` of verdicts, and `rows`."""
    counted = frame["verdict"].value_counts()
    verdicts = {verdict: int(counted.get(verdict, 0)) for verdict in VERDICTS}
    return {"schema": 1, "counts": verdicts, "rows": rows_of(frame)}
