"""An array lies on another device."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import moved
from harness.watch.events import Leaf


def _placement(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    how = moved(*leaves)
    if how is not None and how[0]:
        yield Change(leaves[1].path, *how[1])


CAUSE = ChangeKind(
    name="device",
    looks={"placement": _placement},
    sets_off="LC",
    sentence="`{argument}` is committed to {after}, before to {before}.",
    remedy="Keep `{argument}` on one device; a program is built for each device it runs on.",
    each=True,
)
