"""Tables as compact JSON: by column, text by dictionary, numbers to few significant digits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from harness.report.content import LIST, TEXT, Column, Table


def encode(table: Table) -> dict[str, Any]:
    """Return a table as plain data: its columns, and the values of each under its name.

    Text is `{"d": distinct values, "i": the place of each row's value in them}`, and so are lists,
    of which many rows share one. Numbers are a list with null for what is not known.
    """
    return {
        "caption": table.caption,
        "columns": [_about(column) for column in table.columns],
        "length": len(table.data),
        "values": {column.name: _values(table, column) for column in table.columns},
    }


def _about(column: Column) -> dict[str, Any]:
    about: dict[str, Any] = {"name": column.name, "label": column.label, "kind": column.kind}
    if column.stage:
        about["stage"] = column.stage
    if column.hidden:
        about["hidden"] = True
    return about


def _values(table: Table, column: Column) -> Any:
    values = table.data[column.name]
    if column.kind == TEXT:
        return _dictionary(values.fillna("").astype(str))
    if column.kind == LIST:
        return _dictionary("[" + ",".join(map(_digits, value)) + "]" for value in values)
    return [rounded(value, column.digits) for value in values.tolist()]


def _dictionary(values: Iterable[str]) -> dict[str, Any]:
    places: dict[str, int] = {}
    return {"i": [places.setdefault(value, len(places)) for value in values], "d": list(places)}


def rounded(value: Any, digits: int = 4) -> float | int | None:
    """Return a number to some significant digits, None for one that is not known."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _digits(value: Any) -> str:
    short = rounded(value)
    return "null" if short is None else f"{short:g}" if abs(short) < 1e-4 else str(short)


def to_script(data: Any) -> str:
    """Return data as JSON that can stand between script tags whatever text is in it.

    No `<`, `>` or `&` is left, so that nothing closes the element or opens a comment.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
