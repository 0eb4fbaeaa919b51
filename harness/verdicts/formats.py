"""A comparison for other programs: strict JSON, and CSV."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pandas as pd

from harness.verdicts.compare import Comparison
from harness.verdicts.listing import counts, found_across, ordered, rows_of

SCHEMA = 1
"""Version of the layout of the JSON."""


def to_json(comparison: Comparison) -> str:
    """Return a comparison as one JSON object; what is not known is null.

    `schema`, `a` and `b` (what the arms are), `interleaved`, `across_machines` (whether that was
    asked for), `across` (how the machines differ that were compared), `counts` of verdicts,
    `error_rates` by machine (null where not measured) and `rows`, worst first, with the columns of
    the frame.
    """
    found = {
        "schema": SCHEMA,
        "a": comparison.a.label,
        "b": comparison.b.label,
        "interleaved": comparison.interleaved,
        "across_machines": comparison.across,
        "across": found_across(comparison.frame),
        "counts": counts(comparison.frame),
        "error_rates": {
            machine: _rates(rates) for machine, rates in sorted(comparison.rates.items())
        },
        "rows": [
            {name: plain(value) for name, value in row.items()}
            for row in rows_of(ordered(comparison.frame))
        ],
    }
    return json.dumps(found, indent=1, allow_nan=False, ensure_ascii=False)


def _rates(rates: Any) -> Any:
    """Return error rates without what they hold of each case."""
    if rates is None:
        return None
    whole = msgspec.to_builtins(rates)
    return plain({name: value for name, value in whole.items() if name != "noise"})


def plain(value: Any) -> Any:
    """Return a value as strict JSON can hold it: no NaN, no infinity, no types of NumPy."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def to_csv(comparison: Comparison) -> str:
    """Return the frame as CSV, worst first; what is not known is empty."""
    frame: pd.DataFrame = ordered(comparison.frame)
    return str(frame.to_csv(index=False))
