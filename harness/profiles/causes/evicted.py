"""JAX had it, and had no more room for it."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, LossKind, Lost


def _no_room(lost: Lost) -> Cause | None:
    since, kept = lost.since, lost.kept
    if not kept or since < kept:
        return None
    return Cause(
        "evicted",
        before=f"{since:,} others since",
        after=f"{kept:,} are kept",
        sentence=f"`{lost.built.function.name}` had been built for these arguments, but {since:,} "
        f"other programs were built since, and JAX keeps {kept:,}.",
        remedy="Build fewer different programs: the other causes say which come in large numbers.",
        nearest=lost.had[-1].line.id,
    )


CAUSE = LossKind(name="evicted", explains=_no_room)
