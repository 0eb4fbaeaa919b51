"""What differs between two arrays that are given as the same argument."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.profiles.causes.aspects import committed
from harness.profiles.causes.difference import Difference
from harness.profiles.causes.texts import with_article
from harness.watch import events

_TYPE = re.compile(r"(?P<dtype>[^\[]*)\[(?P<shape>[^\]]*)\]", re.DOTALL)
_SPACE = re.compile(r"<(?:host|any|device)>$")
"""The space in memory that is part of a type; `key<fry>` is a dtype."""

_SHARDING = re.compile(
    r"(?P<how>\w+\(.*\))(?: on (?P<devices>\S+))?(?: in (?P<memory>\S+))?", re.DOTALL
)


class _ArrayType(NamedTuple):
    """The parts of an array's type."""

    dtype: str
    space: str
    """In memory, `<host>` for example; empty for the usual one."""
    shape: str
    """As Python writes it, without the names of mesh axes."""


@functools.lru_cache(maxsize=50_000)  # a program with many shapes asks for each some times
def _array_type(aval: str) -> _ArrayType | None:
    match = _TYPE.match(aval.lstrip("~"))
    if match is None:
        return None
    space = _SPACE.search(match["dtype"])
    dtype = match["dtype"][: space.start()] if space else match["dtype"]
    return _ArrayType(dtype, space.group() if space else "", _as_tuple(_plain(match["shape"])))


def type_differences(old: events.Leaf, new: events.Leaf) -> Iterator[Difference]:
    """Yield what differs in the types of two arrays of the same name."""
    one, other = _array_type(old.aval), _array_type(new.aval)
    if one is None or other is None:
        if old.aval != new.aval:
            yield Difference("dtype", new.path, old.aval, new.aval, "T")
        return
    if one.dtype != other.dtype:
        yield Difference("dtype", new.path, one.dtype, other.dtype, "T")
    if one.shape != other.shape:
        yield Difference("shape", new.path, one.shape, other.shape, "T")
    elif one.space != other.space or (old.aval != new.aval and one.dtype == other.dtype):
        yield Difference("sharding", new.path, *_either(old, new), "T")
    if old.weak != new.weak:
        yield Difference("weak type", new.path, _weak(old), _weak(new), "T")


def _either(old: events.Leaf, new: events.Leaf) -> tuple[str, str]:
    """Return the placement of arrays where it differs, and else their types."""
    before, after = _committed(old), _committed(new)
    return (before, after) if before != after else (old.aval, new.aval)


def _plain(shape: str) -> str:
    """Return a shape without the names of mesh axes: `8@x,4` is 8,4."""
    if "@" not in shape:
        return shape
    return re.sub(r"@[^,\]]*(\([^)]*\))?", "", shape)


def _as_tuple(shape: str) -> str:
    """Return a shape as Python writes it: `8,4` is (8, 4), `8` is (8,)."""
    return f"({shape},)" if shape and "," not in shape else f"({shape.replace(',', ', ')})"


def _weak(leaf: events.Leaf) -> str:
    dtype = leaf.aval.lstrip("~").partition("[")[0]
    if leaf.kind in ("int", "float", "complex", "bool"):
        return f"a Python {leaf.kind}"
    return f"a weakly typed {dtype}" if leaf.weak else with_article(dtype)


def placement_differences(old: events.Leaf, new: events.Leaf) -> Iterator[Difference]:
    """Yield what differs in where two arrays of the same name lie, and how."""
    both = [committed(leaf) for leaf in (old, new)]
    if both[0] != both[1]:
        yield Difference("committed", new.path, _committed(old), _committed(new), "L")
    elif both[1] and old.sharding != new.sharding:
        yield _sharding(old, new)
    if old.layout != new.layout:
        before, after = (leaf.layout or "the usual order" for leaf in (old, new))
        yield Difference("layout", new.path, before, after, "L")


def _committed(leaf: events.Leaf) -> str:
    return _where(leaf) if committed(leaf) else "not committed"


def _where(leaf: events.Leaf) -> str:
    """Return a device's name where there is one, and else the whole sharding."""
    match = _SHARDING.fullmatch(leaf.sharding)
    if match and match["devices"] and match["how"] == "SingleDeviceSharding()":
        return match["devices"] + (f" in {match['memory']}" if match["memory"] else "")
    return leaf.sharding


def _sharding(old: events.Leaf, new: events.Leaf) -> Difference:
    one, other = (_SHARDING.fullmatch(leaf.sharding) for leaf in (old, new))
    texts = _where(old), _where(new)
    if one and other and one.group("how", "memory") == other.group("how", "memory"):
        return Difference("device", new.path, *texts, "LC")
    return Difference("sharding", new.path, *texts, "L")
