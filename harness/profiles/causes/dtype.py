"""Another dtype of an array."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import array_type, of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf


def _types(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None:
        if old.aval != new.aval:
            yield Change(new.path, old.aval, new.aval)
    elif one.dtype != other.dtype:
        yield Change(new.path, one.dtype, other.dtype)


def _remedy(built: Built, what: Change) -> str:
    if "key<" in what.before + what.after:
        return "Make all keys in one way: jax.random.key, or jax.random.PRNGKey."
    if "Ref{" in what.before + what.after:
        return f"Make `{what.argument}` of arrays of one dtype."
    return f"Give `{what.argument}` one dtype, e.g. `{what.argument}.astype('{what.before}')`."


CAUSE = ChangeKind(
    name="dtype",
    several="{what} had {n} dtypes",
    looks={"types": _types, "statics": of_operations("dtype", "new_dtype")},
    sentence="The dtype of `{argument}` was {before}, now {after}.",
    remedy=_remedy,
    each=True,
)
