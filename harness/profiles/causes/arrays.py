"""What arrays are, and where they lie, in words."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from harness.watch import events

_TYPE = re.compile(r"(?P<dtype>[^\[]*)\[(?P<shape>[^\]]*)\](?P<end>\}?)", re.DOTALL)
_SPACE = re.compile(r"<(?:host|any|device)>$")
"""The space in memory that is part of a type; `key<fry>` is a dtype."""

_SHARDING = re.compile(
    r"(?P<how>\w+\(.*\))(?: on (?P<devices>\S+))?(?: in (?P<memory>\S+))?", re.DOTALL
)


class ArrayType(NamedTuple):
    """The parts of an array's type."""

    dtype: str
    space: str
    """In memory, `<host>` for example; empty for the usual one."""
    shape: str
    """As Python writes it, without the names of mesh axes."""


@functools.lru_cache(maxsize=50_000)  # a program with many shapes asks for each some times
def array_type(aval: str) -> ArrayType | None:
    """Return the parts of a type such as `float32[8@x,4]`; None where it is none."""
    match = _TYPE.match(aval.lstrip("~"))
    if match is None:
        return None
    space = _SPACE.search(match["dtype"])
    dtype = match["dtype"][: space.start()] if space else match["dtype"]
    dtype += match["end"]  # `Ref{float32[3]}` is a Ref{float32}
    shape = re.sub(r"@[^,\]]*(\([^)]*\))?", "", match["shape"])
    shape = f"({shape},)" if shape and "," not in shape else f"({shape.replace(',', ', ')})"
    return ArrayType(dtype, space.group() if space else "", shape)


def committed(leaf: events.Leaf) -> bool:
    """Return whether JAX must leave an argument where it is; it takes a given type by its word."""
    return leaf.committed or (leaf.kind == "jax.ShapeDtypeStruct" and bool(leaf.sharding))


def committed_text(leaf: events.Leaf) -> str:
    """Return where an array is committed to."""
    return where_text(leaf) if committed(leaf) else "not committed"


def where_text(leaf: events.Leaf) -> str:
    """Return a device's name where there is one, and else the whole sharding."""
    match = _SHARDING.fullmatch(leaf.sharding)
    if match and match["devices"] and match["how"] == "SingleDeviceSharding()":
        return match["devices"] + (f" in {match['memory']}" if match["memory"] else "")
    return leaf.sharding


def moved(old: events.Leaf, new: events.Leaf) -> tuple[bool, tuple[str, str]] | None:
    """Return whether an array lies alike on other devices, and where; None if it did not move."""
    if not committed(old) or not committed(new) or old.sharding == new.sharding:
        return None
    one, other = (_SHARDING.fullmatch(leaf.sharding) for leaf in (old, new))
    alike = one and other and one.group("how", "memory") == other.group("how", "memory")
    return bool(alike), (where_text(old), where_text(new))
