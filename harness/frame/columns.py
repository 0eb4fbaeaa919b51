"""The columns of the frame: the name and kind of each, and how values stand there.

A column of a file has one type, an axis may have several (`8`, `"8"`, `(8, 8)`, `True`): so the
axes of a case are one JSON text too, in which each value keeps its own. JSON's lists stand for
tuples, since no axis is a list. What JSON does not know is an object with one member:
`{"float": "inf"}`, or `{"literal": "b'x'"}` for Python's other literals.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.program.facts import FACTS

TEXT = "text"
MOMENT = "moment"
NUMBER = "number"
COUNT = "count"
NUMBERS = "numbers"
TEXTS = "texts"
JSON = "json"

DTYPES = {
    TEXT: "str",
    MOMENT: "datetime64[ms, UTC]",
    NUMBER: "float64",
    COUNT: "int64",
    NUMBERS: "object",
    TEXTS: "object",
    JSON: "object",
}
"""What pandas calls the type of each kind. Numbers are NaN where nobody knows them."""


COLUMNS = {
    "machine": TEXT,
    "commit": TEXT,
    "commit_date": MOMENT,
    "started_at": MOMENT,
    "env": TEXT,
    "xla_flags": TEXT,
    "env_vars": TEXT,
    "python": TEXT,
    "jax": TEXT,
    "jaxlib": TEXT,
    "workload": TEXT,
    "version": TEXT,
    "target": TEXT,
    "transform": TEXT,
    "scenario": TEXT,
    "stage": TEXT,
    "unit": TEXT,
    "value": NUMBER,
    "calibrated": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "interval_level": NUMBER,
    "least": NUMBER,
    "p10": NUMBER,
    "p50": NUMBER,
    "p90": NUMBER,
    "p50_low": NUMBER,
    "p50_high": NUMBER,
    "n_calls": NUMBER,
    "programs": NUMBER,
    "programs_s": NUMBER,
    "collected_s": NUMBER,
    "n_samples": COUNT,
    "n_processes": COUNT,
    "samples": NUMBERS,
    "status": TEXT,
    "reason": TEXT,
    "fingerprint": TEXT,
    "inputs": TEXT,
    "code": TEXT,
    "effort": TEXT,
    "protocol": TEXT,
    "method": NUMBER,
    "dirty": TEXT,
    "night": TEXT,
    "environment": JSON,
    "calibrated_samples": NUMBERS,
    "cpu_samples": NUMBERS,
    "p90_samples": NUMBERS,
    "waiting_samples": NUMBERS,
    "others_cores": NUMBERS,
    "load_averages": NUMBERS,
    "processes": TEXTS,
    "entry_bytes": NUMBER,
    "precision": TEXT,
    "backend": TEXT,
    "threads": TEXT,
    "comparable": TEXT,
    "labels": TEXT,
    "static": TEXT,
    "n_forked": NUMBER,
    **dict.fromkeys(FACTS, NUMBER),
    "axes": JSON,
}
"""The kind of each column that every frame has, in order; those of axes follow. docs/frame.md says
what they mean, and their units."""

AXES = "axes"
"""The column with the axes of each row as JSON, and so with the names of the columns of axes."""

LISTS = tuple(name for name, kind in COLUMNS.items() if kind in (NUMBERS, TEXTS))
"""Columns that hold a list in each row."""


def objects(values: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return a column of Python objects; tuples and lists stay whole."""
    return np.fromiter(values, dtype=object)


def order_of(value: Any) -> tuple[int, Any]:
    """Return what to sort the values of an axis by: numbers, text, tuples, others."""
    if isinstance(value, int | float):
        # NaN would make the order depend on where one begins.
        return (0, value) if value == value else (3, "nan")
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, tuple):
        return (2, tuple(map(order_of, value)))
    return (3, repr(value))


NO_MOMENT = np.iinfo(np.int64).min
"""Milliseconds that stand for no date: NumPy's NaT."""


def to_moment(milliseconds: object) -> int:
    """Return milliseconds since 1970 as a frame can hold them, or :data:`NO_MOMENT`."""
    limit = 8.64e15  # the last moment of JavaScript's Date, in which asv counts
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return NO_MOMENT
    return int(milliseconds) if abs(milliseconds) <= limit else NO_MOMENT


def is_missing(value: object) -> bool:
    """Return whether a cell of an axis says that its workload lacks the axis."""
    return isinstance(value, float) and value != value


def encode_axes(axes: Mapping[str, Any]) -> str:
    """Return axes as the text of a JSON object; axes that are NaN, which a case lacks, are out."""
    return json.dumps(
        {name: _plain(value) for name, value in axes.items() if not is_missing(value)},
        ensure_ascii=False,
        allow_nan=False,
    )


def decode_axes(text: str) -> dict[str, Any]:
    """Return the axes that :func:`encode_axes` made a text of."""
    return {name: _value(value) for name, value in json.loads(text).items()}


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


def _value(encoded: Any) -> Any:
    if isinstance(encoded, list):
        return tuple(map(_value, encoded))
    if isinstance(encoded, dict):
        return (
            float(encoded["float"]) if "float" in encoded else ast.literal_eval(encoded["literal"])
        )
    return encoded
