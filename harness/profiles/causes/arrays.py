"""Arrays of another type, of another shape, or in another place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.jaxhooks.events import Leaf, Static
from harness.jaxhooks.remedies import power_of_two
from harness.profiles.causes.cause import Cause, Change, Pair, Remedy, Shape, Way, WithoutEdit
from harness.profiles.causes.values import (
    array_type,
    committed,
    lies,
    moved,
    numbers_in,
    shape_text,
    static_change,
)
from harness.profiles.model import Built

Leaves = tuple[Leaf, Leaf]

_NUMBERS = ("int", "float", "complex", "bool")

_NARROW = ("bfloat16", "float16")
"""What a number leaves as it is, and an array of a wider type does not."""

_RANKS = ("bool", "", "uint", "int", "bfloat", "float", "complex")
"""Kinds of dtypes, in pairs of one rank: the higher one holds the lower one's values."""

_SHAPES = (
    "shape",
    "sizes",
    "new_sizes",
    "slice_sizes",
    "start_indices",
    "limit_indices",
    "dimensions",
)
"""Parameters of JAX's own operations: shapes in the call of the user."""


def dtypes(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at dtypes, and at types that have none."""
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None:
        if old.aval != new.aval:
            yield Change(new.path, old.aval, new.aval)
    elif one.dtype != other.dtype:
        yield Change(new.path, one.dtype, other.dtype)


def dtype_remedy(pair: Pair, what: Cause, leaves: Leaves) -> Remedy:
    """Return how to have one dtype, which for a key or reference is another way."""
    types = "".join(leaf.aval for leaf in leaves)
    if "key<" in types:
        typed = all("key<" in leaf.aval for leaf in leaves)
        return Remedy("one kind of key", what.argument, "impl" * typed)
    if "Ref{" in types:
        return Remedy("references of one dtype", what.argument)
    return Remedy("one dtype", what.argument, _wider(what.before, what.after))


def _wider(one: str, other: str) -> str:
    """Return the dtype that holds the values of both, as JAX promotes arrays."""
    first, second = (re.fullmatch(r"([a-z]+?)(\d*)", name) for name in (one, other))
    if first is None or second is None or first[1] not in _RANKS or second[1] not in _RANKS:
        return one
    ranks = [_RANKS.index(match[1]) // 2 for match in (first, second)]
    if ranks[0] != ranks[1]:
        return one if ranks[0] > ranks[1] else other
    bits = [int(match[2] or 0) for match in (first, second)]
    if first[1] == second[1] or (ranks[0] == 2 and bits[0] != bits[1]):
        return one if bits[0] >= bits[1] else other
    if ranks[0] == 2:
        return "float32"  # of float16 and bfloat16
    signed, unsigned = bits if first[1] == "int" else reversed(bits)
    return f"int{signed if signed > unsigned else min(2 * unsigned, 64)}"


def shapes(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at shapes."""
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is not None and other is not None and one.shape != other.shape:
        sizes = one.shape, other.shape
        yield Change(new.path, shape_text(one.shape), shape_text(other.shape), sizes=sizes)


def shapes_of_operations(pair: Pair, statics: tuple[Static, Static]) -> list[Cause] | None:
    """Look at shapes that an operation of JAX's is given as parameters."""
    before, after = statics
    if not pair.new.eager or after.name not in _SHAPES:
        return None
    sizes = numbers_in(before.value), numbers_in(after.value)
    return [static_change(before, after)._replace(sizes=sizes)]


def weak_types(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at Python numbers and weakly typed arrays where others have a type of their own."""
    old, new = leaves
    if array_type(old.aval) and array_type(new.aval) and old.weak != new.weak:
        (before, was), (after, now) = map(_weak, leaves)
        yield Change(new.path, before, after, ways=(was, now))


def _weak(leaf: Leaf) -> tuple[str, Way]:
    if leaf.kind in _NUMBERS:
        return leaf.kind, "python"
    type_ = array_type(leaf.aval)
    return type_.dtype if type_ else leaf.aval, "weak" if leaf.weak else "fixed"


def weak_remedy(pair: Pair, what: Cause, leaves: Leaves) -> Remedy:
    """Return how an array has the same type each time."""
    kinds = [leaf.kind in _NUMBERS for leaf in leaves]
    if not any(kinds):
        return Remedy("explicit dtype", what.argument)
    types = [
        array_type(leaf.aval) for leaf, number in zip(leaves, kinds, strict=True) if not number
    ]
    dtype = next((type_.dtype for type_ in types if type_), "float32")
    given = pair.new.arguments.leaves if pair.new.arguments else ()
    all_ = {type_.dtype for leaf in given if (type_ := array_type(leaf.aval))}
    narrow = next((one for one in _NARROW if one in all_ and one != dtype), "")
    return Remedy("always an array", what.argument, dtype, type=narrow)


def unused(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at types of what the function does not use."""
    old, new = leaves
    yield Change(new.path, old.aval, new.aval)


def meshes(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at the mesh and the space in memory, which are part of an array's type."""
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None or one.shape != other.shape:
        return
    if one.space != other.space or (old.aval != new.aval and one.dtype == other.dtype):
        (before, was), (after, now) = lies(old), lies(new)
        if (before, was) == (after, now):
            (before, was), (after, now) = (old.aval, ""), (new.aval, "")
        yield Change(new.path, before, after, ways=(was, now))


def shardings(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at how arrays are spread over devices."""
    how = moved(*leaves)
    if how is not None and not how[0]:
        yield Change(leaves[1].path, *how[1])


def devices(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at arrays that lie alike on other devices."""
    how = moved(*leaves)
    if how is not None and how[0]:
        yield Change(leaves[1].path, *how[1])


def commitments(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at whether an array is committed to a device."""
    old, new = leaves
    if committed(old) != committed(new):
        (before, was), (after, now) = lies(old), lies(new)
        yield Change(new.path, before, after, ways=(was, now))


def layouts(pair: Pair, leaves: Leaves) -> Iterator[Cause]:
    """Look at the order of an array's elements in memory."""
    old, new = (leaf.layout for leaf in leaves)
    if old != new:
        ways: tuple[Way, Way] = ("" if old else "usual", "" if new else "usual")
        yield Change(leaves[1].path, old, new, ways=ways)


def padded_counts(several: Sequence[Shape]) -> tuple[int, ...]:
    """Return how many shapes there are, and how many where each axis that varies is padded.

    To powers of two; nothing where that leaves as many.
    """
    axes = _varying(several)
    padded = {_padded(shape, axes) for shape in several}
    return (len(several), len(padded)) if axes and len(padded) < len(several) else ()


def of_one_axis(several: Sequence[Shape]) -> int:
    """Return how many sizes one axis has in shapes that are otherwise alike; 0 if they are not."""
    return len(set(several)) if len(_varying(several)) == 1 else 0


def _varying(several: Sequence[Shape]) -> list[int]:
    """Return the axes that have several sizes; none where the number of axes itself varies."""
    if len(set(map(len, several))) != 1:
        return []
    return [n for n, sizes in enumerate(zip(*several, strict=True)) if len(set(sizes)) > 1]


def _padded(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(
        power_of_two(size) if axis in axes and isinstance(size, int) else size
        for axis, size in enumerate(shape)
    )


def tried_padded(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    """Pad whatever varies among the function's arguments: axes of one length belong together."""
    all_shapes = [
        {
            leaf.path: type_.shape
            for leaf in (built.arguments.leaves if built.arguments else ())
            if (type_ := array_type(leaf.aval))
        }
        for built in builds
    ]
    axes = {
        path: varying
        for path in sorted(set().union(*all_shapes))
        if (varying := _varying([one[path] for one in all_shapes if path in one]))
    }
    seen, left_out = set(), []
    for built, paths in zip(builds, all_shapes, strict=True):
        padded = {path: _padded(shape, axes.get(path, ())) for path, shape in paths.items()}
        signature = str((padded, built.arguments and built.arguments.statics))
        if signature in seen:
            left_out.append(built)
        seen.add(signature)
    return WithoutEdit({"how": "padded", "leaves": axes}, left_out) if left_out else None


def tried_strong(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    """Give whatever is weakly typed at times its dtype: one that is left may build as well."""
    given = (built.arguments.leaves for built in builds if built.arguments)
    kinds = {
        (leaf.path, kind.dtype, leaf.weak)
        for leaves in given
        for leaf in leaves
        if (kind := array_type(leaf.aval))
    }
    dtypes_of = {path: dtype for path, dtype, weak in sorted(kinds) if weak}
    dtypes_of = {path: dtype for path, dtype in dtypes_of.items() if (path, dtype, False) in kinds}
    if cause.argument not in dtypes_of:
        return None
    return WithoutEdit({"how": "strong", "leaves": dtypes_of})
