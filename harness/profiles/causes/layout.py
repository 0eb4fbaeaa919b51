"""Another order of an array's elements in memory."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.watch.events import Leaf


def _placement(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if old.layout != new.layout:
        before, after = (leaf.layout or "the usual order" for leaf in leaves)
        yield Change(new.path, before, after)


CAUSE = ChangeKind(
    name="layout",
    looks={"placement": _placement},
    sentence="The layout of `{argument}` was {before}, now {after}.",
    remedy="Give `{argument}` one layout; JAX builds a program for each.",
    each=True,
)
