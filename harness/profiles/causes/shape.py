"""Another shape of an array."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.arrays import array_type
from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf

_PARAMETERS = (
    *("shape", "sizes", "new_sizes", "slice_sizes", "start_indices", "limit_indices"),
    "dimensions",
)
"""Of JAX's own operations: shapes in the call of the user."""


def _types(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is not None and other is not None and one.shape != other.shape:
        yield Change(new.path, one.shape, other.shape)


def _sentence(built: Built, what: Change) -> str:
    one, other = (text.strip("()").split(", ") for text in (what.before, what.after))
    axes = ""
    if len(one) == len(other) >= 2:
        pairs = enumerate(zip(one, other, strict=True))
        changed = [str(axis) for axis, pair in pairs if pair[0] != pair[1]]
        axes = f" (ax{'i' if len(changed) == 1 else 'e'}s {', '.join(changed)})"
    return f"The shape of `{what.argument}` was {what.before}, now {what.after}{axes}."


CAUSE = ChangeKind(
    name="shape",
    several="{what} had {n} shapes",
    looks={"types": _types, "statics": of_operations(*_PARAMETERS)},
    sentence=_sentence,
    remedy="Pad `{argument}` to few sizes (a multiple, or buckets), or build once for all sizes "
    "with jax.export and symbolic shapes.",
    each=True,
)
