"""An array lies otherwise, or in another space of memory."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import array_type, committed_text, moved, of_operations
from harness.watch.events import Leaf


def _types(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    """A mesh and the space in memory are part of an array's type."""
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None or one.shape != other.shape:
        return
    if one.space != other.space or (old.aval != new.aval and one.dtype == other.dtype):
        before, after = committed_text(old), committed_text(new)
        if before == after:
            before, after = old.aval, new.aval
        yield Change(new.path, before, after)


def _placement(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    how = moved(*leaves)
    if how is not None and not how[0]:
        yield Change(leaves[1].path, *how[1])


CAUSE = ChangeKind(
    name="sharding",
    looks={
        "types": _types,
        "statics": of_operations("sharding", "out_sharding"),
        "placement": _placement,
    },
    sentence="The sharding of `{argument}` was {before}, now {after}.",
    remedy="Give `{argument}` one sharding before the first call, e.g. by jax.device_put.",
    each=True,
    placed=True,
)
