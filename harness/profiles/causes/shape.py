"""Another shape of an array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.profiles.causes.cause import Cause, Change, ChangeKind, Pair, WithoutEdit
from harness.profiles.causes.words import array_type, of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf
from harness.watch.remedies import power_of_two

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
    several = [sizes(text) for text in shapes]
    axes = _varying(several)
    padded = {_padded(shape, axes) for shape in several}
    if not axes or len(padded) >= len(several):
        return ""
    return f"Padded to powers of two, these {len(several)} shapes are {len(padded)}."


def of_one_axis(shapes: Sequence[tuple[int, ...]]) -> int:
    """Return how many sizes one axis has in shapes that are otherwise alike; 0 if they are not."""
    return len(set(shapes)) if len(_varying(shapes)) == 1 else 0


def sizes(text: str) -> tuple[int, ...]:
    """Return the numbers in a shape, as Python writes it."""
    return tuple(map(int, re.findall(r"\d+", text)))


def _varying(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the axes that have several sizes; none where the number of axes itself varies."""
    if len(set(map(len, shapes))) != 1:
        return []
    return [n for n, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1]


def _padded(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(power_of_two(n) if axis in axes else n for axis, n in enumerate(shape))


def _tried(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    """Pad whatever varies among the function's arguments: axes of one length belong together."""
    shapes = [
        {
            leaf.path: sizes(kind.shape)
            for leaf in (built.arguments.leaves if built.arguments else ())
            if (kind := array_type(leaf.aval))
        }
        for built in builds
    ]
    axes = {
        path: varying
        for path in sorted(set().union(*shapes))
        if (varying := _varying([one[path] for one in shapes if path in one]))
    }
    seen, left_out = set(), []
    for built, paths in zip(builds, shapes, strict=True):
        padded = {path: _padded(shape, axes.get(path, ())) for path, shape in paths.items()}
        signature = str((padded, built.arguments and built.arguments.statics))
        if signature in seen:
            left_out.append(built)
        seen.add(signature)
    if not left_out:
        return None
    arguments = ", ".join(f"`{path}`" for path in axes)
    words = f"{arguments} of {{name}} padded to powers of two"
    return WithoutEdit({"how": "padded", "leaves": axes}, words, left_out)


CAUSE = ChangeKind(
    name="shape",
    several="{what} had {n} shapes",
    looks={"types": _types, "statics": of_operations(*_PARAMETERS)},
    sentence=_sentence,
    remedy="Pad `{argument}` to few sizes (a multiple, or buckets): XLA compiles each size, also "
    "those of one jax.export with symbolic shapes.",
    remaining=_remaining,
    tried=_tried,
    each=True,
)
