"""JAX had it, and had no more room for it."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.model import Built

CAUSE = Kind(name="evicted")


def of(built: Built, since: int, kept: int) -> Cause | None:
    """Return the cause where JAX keeps `kept` (0: all), and as many were built since."""
    if not kept or since < kept:
        return None
    return Cause(
        CAUSE.name,
        before=f"{since:,} others since",
        after=f"{kept:,} are kept",
        sentence=f"`{built.function.name}` had been built for these arguments, but {since:,} "
        f"other programs were built since, and JAX keeps {kept:,}.",
        remedy="Build fewer different programs: the other causes say which come in large numbers.",
    )
