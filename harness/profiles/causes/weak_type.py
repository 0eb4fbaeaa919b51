"""A Python number or weakly typed array stands where an array of a fixed type stood, or reverse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.profiles.causes.cause import Cause, Change, ChangeKind, Pair, WithoutEdit
from harness.profiles.causes.words import array_type, of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf


def with_article(noun: str) -> str:
    """Return a type's name with its article: an int32, a uint32."""
    return f"an {noun}" if noun[:1] in "aeio" else f"a {noun}"


def _weak(leaf: Leaf) -> str:
    dtype = leaf.aval.lstrip("~").partition("[")[0]
    if leaf.kind in ("int", "float", "complex", "bool"):
        return f"a Python {leaf.kind}"
    return f"a weakly typed {dtype}" if leaf.weak else with_article(dtype)


def _types(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if array_type(old.aval) and array_type(new.aval) and old.weak != new.weak:
        yield Change(new.path, _weak(old), _weak(new))


def _remedy(built: Built, what: Change) -> str:
    scalar = next((t for t in (what.before, what.after) if t.startswith("a Python")), "")
    if not scalar:
        return (
            f"Give `{what.argument}` an explicit dtype where it is made, or what it is made of: "
            "zeros_like and the like keep a weak type."
        )
    array = next((t for t in (what.before, what.after) if t != scalar), "")
    dtype = array.rpartition(" ")[2] or "float32"
    return f"Pass `{what.argument}` always as an array, e.g. jnp.{dtype}(...), or never."


def _tried(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    """Give whatever is weakly typed at times its dtype: one that is left may build as well."""
    given = (built.arguments.leaves for built in builds if built.arguments)
    kinds = {
        (leaf.path, kind.dtype, leaf.weak)
        for leaves in given
        for leaf in leaves
        if (kind := array_type(leaf.aval))
    }
    dtypes = {path: dtype for path, dtype, weak in sorted(kinds) if weak}
    dtypes = {path: dtype for path, dtype in dtypes.items() if (path, dtype, False) in kinds}
    if cause.argument not in dtypes:
        return None
    names = ", ".join(f"`{path}`" for path in dtypes)
    words = f"{names} of {{name}} always {' or '.join(sorted(set(dtypes.values())))}"
    return WithoutEdit({"how": "strong", "leaves": dtypes}, words)


CAUSE = ChangeKind(
    name="weak type",
    looks={"types": _types, "statics": of_operations("weak_type")},
    sentence="`{argument}` was {before}, now {after}: JAX tells the two types apart.",
    remedy=_remedy,
    tried=_tried,
    each=True,
    apart=True,
    weight=1,  # the same array is near
)
