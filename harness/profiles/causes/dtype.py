"""Another dtype of an array, or a fixed one for a weak one: Python's numbers are weakly typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.profiles.causes.cause import Cause, Change, ChangeKind, Pair, WithoutEdit
from harness.profiles.causes.words import array_type, of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf


def _dtype(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None:
        if old.aval != new.aval:
            yield Change(new.path, old.aval, new.aval)
    elif one.dtype != other.dtype:
        yield Change(new.path, one.dtype, other.dtype)


def _dtype_remedy(built: Built, what: Change) -> str:
    if "key<" in what.before + what.after:
        return "Make all keys in one way: jax.random.key, or jax.random.PRNGKey."
    if "Ref{" in what.before + what.after:
        return f"Make `{what.argument}` of arrays of one dtype."
    return f"Give `{what.argument}` one dtype, e.g. `{what.argument}.astype('{what.before}')`."


def _weak(leaf: Leaf) -> str:
    dtype = leaf.aval.lstrip("~").partition("[")[0]
    if leaf.kind in ("int", "float", "complex", "bool"):
        return f"a Python {leaf.kind}"
    if leaf.weak:
        return f"a weakly typed {dtype}"
    return f"an {dtype}" if dtype[:1] in "aeio" else f"a {dtype}"


def _weak_type(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if array_type(old.aval) and array_type(new.aval) and old.weak != new.weak:
        yield Change(new.path, _weak(old), _weak(new))


def _weak_remedy(built: Built, what: Change) -> str:
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
    strong = [text for text in (cause.before, cause.after) if " weakly " not in f" {text} "]
    strong = [text for text in strong if not text.startswith("a Python")]
    if not strong or not cause.argument.isidentifier():
        return None
    dtype = strong[0].rpartition(" ")[2]
    told = {"how": "strong", "argument": cause.argument, "dtype": dtype}
    return WithoutEdit(told, f"`{cause.argument}` of {{name}} always {dtype}")


DTYPE = ChangeKind(
    name="dtype",
    several="{what} had {n} dtypes",
    looks={"types": _dtype, "statics": of_operations("dtype", "new_dtype")},
    sentence="The dtype of `{argument}` was {before}, now {after}.",
    remedy=_dtype_remedy,
    each=True,
)
WEAK_TYPE = ChangeKind(
    name="weak type",
    looks={"types": _weak_type, "statics": of_operations("weak_type")},
    sentence="`{argument}` was {before}, now {after}: JAX tells the two types apart.",
    remedy=_weak_remedy,
    tried=_tried,
    each=True,
    apart=True,
    weight=1,  # the same array is near
)
