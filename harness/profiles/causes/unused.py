"""Another type of an array that the function does not use."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.watch.events import Leaf


def _unused(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if (old.aval, old.weak) != (new.aval, new.weak):
        yield Change(new.path, old.aval, new.aval)


CAUSE = ChangeKind(
    name="unused argument",
    several="{what} is not used, and had {n} types",
    looks={"unused": _unused},
    sentence="`{name}` does not use `{argument}`, of which the type was {before}, now {after}.",
    remedy="Leave `{argument}` out, or pass None: JAX builds for each of its types all the same.",
    apart=True,
)
