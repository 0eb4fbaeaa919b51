"""What differs between the facts of two programs, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.program.facts import TOTALS


def facts_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the facts that differ, such as `fusions 2 → 3, temporary_bytes 0 → 4096`.

    Args:
        before: facts by name (:data:`harness.program.facts.TOTALS`), of which other keys are left
            alone: a row of the frame will do. A fact that is absent, None or NaN is not known.
        after: the same of what is compared with it.

    Returns:
        "" where none differs; a fact that only one side knows is no difference.
    """
    parts = []
    for name in TOTALS:
        old, new = _number(before.get(name)), _number(after.get(name))
        if old is not None and new is not None and old != new:
            parts.append(f"{name} {_text(old)} → {_text(new)}")
    return ", ".join(parts)


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:.6g}"
