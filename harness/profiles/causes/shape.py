"""Another shape of an array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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


def _remaining(shapes: Sequence[str]) -> str:
    """Say how many shapes are left where each axis that varies is padded to powers of two."""
    sizes = [tuple(map(int, re.findall(r"\d+", text))) for text in shapes]
    if len({len(shape) for shape in sizes}) != 1:
        return ""
    fixed = [len(set(axis)) == 1 for axis in zip(*sizes, strict=True)]
    padded = {
        tuple(
            n if same else 1 << (n - 1).bit_length() for n, same in zip(shape, fixed, strict=True)
        )
        for shape in sizes
    }
    if len(padded) >= len(sizes):
        return ""
    return f"Padded to powers of two, these {len(sizes)} shapes are {len(padded)}."


CAUSE = ChangeKind(
    name="shape",
    several="{what} had {n} shapes",
    looks={"types": _types, "statics": of_operations(*_PARAMETERS)},
    sentence=_sentence,
    remedy="Pad `{argument}` to few sizes (a multiple, or buckets): XLA compiles each size, also "
    "those of one jax.export with symbolic shapes.",
    remaining=_remaining,
    each=True,
)
