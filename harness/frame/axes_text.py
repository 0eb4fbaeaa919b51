"""The axes of a case as one JSON text, from which they come back with their types.

A column of a file has one type, an axis may have several (`8`, `"8"`, `(8, 8)`, `True`): as JSON
each value keeps its own. JSON's lists stand for tuples, since no axis is a list. What JSON does not
know is an object with one member: `{"float": "inf"}`, or `{"literal": "b'x'"}` for Python's other
literals.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def is_missing(value: object) -> bool:
    """Return whether a cell of an axis says that its workload lacks the axis."""
    return isinstance(value, float) and value != value


def encode(axes: Mapping[str, Any]) -> str:
    """Return axes as the text of a JSON object; axes that are NaN, which a case lacks, are out."""
    return json.dumps(
        {name: _plain(value) for name, value in axes.items() if not is_missing(value)},
        ensure_ascii=False,
        allow_nan=False,
    )


def decode(text: str) -> dict[str, Any]:
    """Return the axes that :func:`encode` made a text of."""
    return {name: _value(found) for name, found in json.loads(text).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    try:
        is_literal = bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        is_literal = False
    return {"literal": repr(value)} if is_literal else str(value)


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return tuple(map(_value, found))
    if isinstance(found, dict):
        return float(found["float"]) if "float" in found else ast.literal_eval(found["literal"])
    return found
