"""Nothing that is recorded accounts for a build; nothing is guessed."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.model import Built

CAUSE = Kind(name="unexplained")


def of(built: Built, old: Built | None = None) -> Cause:
    """Return that the cause is not known."""
    name = built.function.name
    text = f"`{name}` was built again, and nothing that is recorded accounts for it."
    return Cause("unexplained", sentence=text, nearest=old.line.id if old else 0)
