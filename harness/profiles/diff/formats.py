"""A difference as tables for people, as a document for JSON, and as a frame for CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness.profiles.diff.difference import (
    NOT_KNOWN,
    FunctionChange,
    FunctionTotals,
    ProfileDifference,
)
from harness.profiles.functions import COUNTS, SIZES
from harness.profiles.pieces import STAGES
from harness.records.units import seconds_text

SCHEMA = 1

SECONDS = "Seconds are of one run each, without an error bar; counts are exact."


def listed(difference: ProfileDifference, every: bool = False) -> list[FunctionChange]:
    """Return the functions that a reader wants to see: not what is the same, nor JAX's own.

    JAX's own are many, and one number in the totals; `every` lists them and the others.
    """
    if every:
        return list(difference.changes)
    return [change for change in difference.changed if not change.function.eager]


def functions_table(changes: Sequence[FunctionChange]) -> pd.DataFrame:
    """Return functions with what is different in A and B: `1 -> 17`."""
    rows = []
    for change in changes:
        pairs = [(change.a.counts[name], change.b.counts[name]) for name in COUNTS]
        rows.append(
            [
                change.function.shown,
                "" if change.status == "changed" else change.status,
                *(str(a) if a == b else f"{a} -> {b}" for a, b in pairs),
                f"{seconds_text(change.a.total_s)} -> {seconds_text(change.b.total_s)}",
                ", ".join(f"{count:+} {_cause(*key)}" for key, count in change.gained.items()),
            ]
        )
    return pd.DataFrame(rows, columns=["function", "", *COUNTS, "seconds", "causes"])


def totals_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return the totals of A and B."""
    rows = []
    for name, (a, b) in difference.totals.items():
        if name.endswith("_s"):
            cells = [f"{name.removesuffix('_s')}, seconds", seconds_text(a), seconds_text(b), ""]
        else:
            change = f"{b - a:+,.0f}" if a != b else ""
            cells = [name.replace("code_bytes", "bytes of code"), f"{a:,}", f"{b:,}", change]
        rows += [cells] if a or b else []
    return pd.DataFrame(rows, columns=["together", "A", "B", "change"])


def facts_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return what the two were recorded with, where it differs; one alone says nothing."""
    facts = difference.facts.items()
    rows = [[name, a, b] for name, (a, b) in facts if a != b and NOT_KNOWN not in (a, b)]
    return pd.DataFrame(rows, columns=["recorded with", "A", "B"])


def footer(difference: ProfileDifference) -> list[str]:
    """Return what is to be known of the numbers."""
    unknown = [name for name, (a, b) in difference.facts.items() if a != b and NOT_KNOWN in (a, b)]
    return [SECONDS, *([f"Recorded in one of the two only: {', '.join(unknown)}."] * bool(unknown))]


def document(difference: ProfileDifference) -> dict[str, Any]:
    """Return all of a difference, functions that are the same included."""
    return {
        "schema": SCHEMA,
        "answer": difference.answer,
        "warnings": difference.warnings,
        "totals": _both(difference.totals),
        "facts": _both(difference.facts),
        "functions": [
            {
                **change.function.key._asdict(),
                "origin": change.function.function.origin,
                "status": change.status,
                "a": _side(change.a),
                "b": _side(change.b),
            }
            for change in difference.changes
        ],
    }


def _both(pairs: dict[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "a": a, "b": b} for name, (a, b) in pairs.items()]


def _side(side: FunctionTotals) -> dict[str, Any]:
    causes = [
        {"kind": key[0], "argument": key[1], "builds": n, "example": side.examples[key]._asdict()}
        for key, n in side.causes.items()
    ]
    return {**_numbers(side), "settings": side.settings, "causes": causes}


def _numbers(side: FunctionTotals) -> dict[str, float]:
    seconds = {f"{stage}_s": took for stage, took in side.seconds.items()}
    return {**side.counts, **seconds, **side.sizes}


def frame(difference: ProfileDifference) -> pd.DataFrame:
    """Return a row per function: `a_compiles`, `b_compiles`, `a_trace_s`, `b_causes` and so on."""
    parts = (*COUNTS, *(f"{stage}_s" for stage in STAGES), *SIZES, "causes")
    rows = []
    for change in difference.changes:
        place, qualname, name, line = change.function.key
        row = [qualname, name, place, line, change.function.function.origin, change.status]
        sides = [
            _numbers(side) | {"causes": "; ".join(f"{n} {_cause(*k)}" for k, n in causes.items())}
            for side, causes in ((change.a, change.a.causes), (change.b, change.b.causes))
        ]
        rows.append([*row, *(side[part] for part in parts for side in sides)])
    names = ["function", "name", "place", "line", "origin", "status"]
    names += [f"{side}_{part}" for part in parts for side in "ab"]
    return pd.DataFrame(rows, columns=names)


def _cause(kind: str, argument: str) -> str:
    return f"{kind} `{argument}`" if argument else kind
