"""A call raised, and nothing was built: what it was given is wrong, say."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.model import Built

CAUSE = Kind(name="raised", again="{name} raised {after} {times}, and nothing was built")


def of(built: Built) -> Cause:
    """Return the cause."""
    text = f"`{built.function.name}` raised {built.line.error}, and nothing was built."
    return Cause("raised", after=built.line.error, sentence=text, remedy="Mend what raises.")
