"""A build repeats one that raised."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.model import Built

CAUSE = Kind(name="failed before")


def of(built: Built, old: Built) -> Cause:
    """Return the cause, by the build that raised."""
    return Cause(
        "failed before",
        before=old.line.error,
        sentence=f"`{built.function.name}` was tried before and raised {old.line.error}: JAX kept "
        "nothing of that.",
        remedy="Mend what raises; JAX does not remember failures.",
        nearest=old.line.id,
    )
