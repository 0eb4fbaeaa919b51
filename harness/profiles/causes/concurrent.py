"""Another thread did the same at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.model import Built

CAUSE = Kind(name="concurrent")


def of(built: Built, had: Sequence[Built]) -> Cause | None:
    """Return the cause where all that built the same were at it, in other threads."""
    new = built.line
    if any(old.line.thread == new.thread or old.line.end_ns <= new.begin_ns for old in had):
        return None
    return Cause(
        CAUSE.name,
        sentence=f"Another thread was building `{built.function.name}` for the same arguments "
        "when this one began.",
        remedy="Call it once before the threads start.",
    )
