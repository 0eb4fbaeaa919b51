"""A difference as tables, Markdown, JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.profiles.diff.difference import COUNTS, NOT_KNOWN, SIZES, Change, Difference, Side
from harness.profiles.pieces import STAGES
from harness.records.markdown import escaped
from harness.records.units import seconds_text

if TYPE_CHECKING:
    import pandas as pd  # half a second that no other format takes

SCHEMA = 1

SECONDS = "Seconds are of one run each, without an error bar; counts are exact."

Rows = tuple[list[str], list[list[str]]]
"""Headings, and the cells of each row."""


def listed(difference: Difference, every: bool = False) -> list[Change]:
    """Return the functions that a reader wants to see: not what is the same, nor JAX's own.

    JAX's own are many, and one number in the totals; `every` lists them and the others.
    """
    if every:
        return list(difference.changes)
    return [change for change in difference.changed if not change.function.eager]


def functions_table(changes: Sequence[Change]) -> Rows:
    """Return functions with what is different in A and B: `1 -> 17`."""
    headings = ["function", "", *COUNTS, "seconds", "causes"]
    rows = []
    for change in changes:
        counts = [_pair(change.a.counts[name], change.b.counts[name]) for name in COUNTS]
        seconds = f"{seconds_text(change.a.total_s)} -> {seconds_text(change.b.total_s)}"
        status = "" if change.status == "changed" else change.status
        causes = ", ".join(f"{count:+} {_cause(key)}" for key, count in change.gained.items())
        rows.append([change.function.shown, status, *counts, seconds, causes])
    return headings, rows


def totals_table(difference: Difference) -> Rows:
    """Return the totals of A and B."""
    rows = []
    for name, a, b in difference.totals:
        if not a and not b:
            continue
        if name.endswith("_s"):
            cells = [f"{name.removesuffix('_s')}, seconds", seconds_text(a), seconds_text(b)]
            rows.append([*cells, ""])
        else:
            change = f"{b - a:+,.0f}" if a != b else ""
            rows.append([name.replace("code_bytes", "bytes of code"), f"{a:,}", f"{b:,}", change])
    return ["together", "A", "B", "change"], rows


def facts_table(difference: Difference) -> Rows:
    """Return what the two were recorded with, where it differs."""
    # What only one profile recorded says nothing.
    rows = [[fact.name, fact.a, fact.b] for fact in difference.facts if not fact.same]
    return ["recorded with", "A", "B"], rows


def footer(difference: Difference) -> list[str]:
    """Return what is to be known of the numbers."""
    unknown = [f.name for f in difference.facts if NOT_KNOWN in (f.a, f.b) and f.a != f.b]
    lines = [SECONDS]
    if unknown:
        lines.append(f"Recorded in one of the two only: {', '.join(unknown)}.")
    return lines


def to_markdown(difference: Difference, every: bool = False) -> str:
    """Return a difference as Markdown for a pull request."""
    first, *rest = difference.answer
    blocks = [f"**{escaped(first)}**", *map(escaped, rest)]
    blocks += [f"⚠ {escaped(text)}" for text in difference.warnings]
    changes = listed(difference, every)
    for rows in (functions_table(changes), totals_table(difference), facts_table(difference)):
        if rows[1]:
            blocks.append(_markdown_table(rows))
    blocks += [f"<sub>{escaped(line)}</sub>" for line in footer(difference)]
    return "\n\n".join(blocks)


def _markdown_table(rows: Rows) -> str:
    headings, cells = rows
    lines = [headings, ["---"] * len(headings), *([escaped(c) for c in row] for row in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def to_json(difference: Difference) -> str:
    """Return all of a difference, functions that are the same included."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "answer": difference.answer,
            "warnings": difference.warnings,
            "totals": [total._asdict() for total in difference.totals],
            "facts": [fact._asdict() for fact in difference.facts],
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
        },
        indent=2,
    )


def _side(side: Side) -> dict[str, Any]:
    causes = [
        {
            "kind": kind,
            "argument": argument,
            "builds": count,
            "example": side.examples[kind, argument]._asdict(),
        }
        for (kind, argument), count in side.causes.items()
    ]
    seconds = {f"{stage}_s": value for stage, value in side.seconds.items()}
    shown = {"settings": side.settings, "causes": causes}
    return {**side.counts, **seconds, **side.sizes, **shown}


def frame(difference: Difference) -> pd.DataFrame:
    """Return a row per function: `a_compiles`, `b_compiles`, `a_trace_s`, `b_causes` and so on."""
    import pandas as pd  # half a second that no other format takes

    parts = (*COUNTS, *(f"{stage}_s" for stage in STAGES), *SIZES, "causes")
    rows = []
    for change in difference.changes:
        key = change.function.key
        row: dict[str, Any] = {
            "function": key.qualname,
            "name": key.name,
            "place": key.place,
            "line": key.line,
            "origin": change.function.function.origin,
            "status": change.status,
        }
        for name, side in (("a", change.a), ("b", change.b)):
            values = _side(side) | {
                "causes": "; ".join(f"{n} {_cause(k)}" for k, n in side.causes.items())
            }
            row |= {f"{name}_{part}": values[part] for part in parts}
        rows.append(row)
    names = ("function", "name", "place", "line", "origin", "status")
    columns = [*names, *(f"{name}_{part}" for part in parts for name in ("a", "b"))]
    return pd.DataFrame(rows, columns=columns)


def _pair(a: int, b: int) -> str:
    return str(a) if a == b else f"{a} -> {b}"


def _cause(key: tuple[str, str]) -> str:
    kind, argument = key
    return f"{kind} `{argument}`" if argument else kind
