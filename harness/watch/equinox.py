"""What the user called, where `equinox.filter_jit` stands between.

It hands JAX a function of its own, `fun_wrapped(dynamic_donate, dynamic_nodonate, static)`, with
the arrays of all arguments in two dictionaries and everything else in one static tuple: in JAX's
words every change is one of `static`. Written for equinox 0.13; what does not look like it is
described in JAX's words.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from harness.watch import call_sites, jax_names

_PARTS = ("first", "fun", "rest")
"""Keys of the dictionaries, in the order in which JAX flattens them."""


class Call(NamedTuple):
    """A call in the user's own words."""

    function: Any
    """What `filter_jit` was given."""
    trees: tuple[tuple[str, Any], ...]
    """Each argument's name and JAX's structure of it."""
    paths: tuple[str, ...]
    """A name for each array, in JAX's order."""
    statics: tuple[tuple[str, Any], ...]
    """Everything that is no array, by its name."""


def call_of(function: Any, args: Sequence[Any]) -> Call | None:
    """Return the user's call, None where JAX was called by another than `filter_jit`."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "fun_wrapped" or len(args) != 3:
        return None
    if not code.co_filename.replace("\\", "/").endswith("equinox/_jit.py"):
        return None
    donated, kept, static = args
    if not isinstance(donated, dict) or not isinstance(kept, dict):
        return None
    dynamic = {**donated, **kept}
    if set(dynamic) != set(_PARTS) or len(static) != len(_PARTS):
        return None
    jax = jax_names.public()
    parts = {}
    for name, (fixed, structure) in zip(("fun", "first", "rest"), static, strict=True):
        both = zip(dynamic[name], fixed, strict=True)
        parts[name] = structure.unflatten(
            [_Leaf(a, True) if value is None else _Leaf(value, False) for a, value in both]
        )
    users = jax.tree.map(lambda leaf: leaf.value, parts["fun"])
    own = (call_sites.name_of(users) or type(users).__name__, parts["fun"])
    rest, keywords = parts["rest"]
    positional = [parts["first"], *rest][:-1]  # equinox puts a None behind the last
    signature = _signature(users)
    named = [(call_sites.parameter_name(signature, n), value) for n, value in enumerate(positional)]
    named += [(f"{name}=", value) for name, value in keywords.items()]
    first = len(positional[:1])
    leaves = {
        part: [leaf for name, value in given for leaf in _leaves(name.rstrip("="), value)]
        for part, given in (("fun", [own]), ("first", named[:first]), ("rest", named[first:]))
    }
    shown = named if isinstance(parts["fun"], _Leaf) else [own, *named]
    return Call(
        users,
        tuple((name, jax.tree.structure(value)) for name, value in shown),
        tuple(
            path
            for part in (donated, kept)
            for name in sorted(part)
            for path, leaf in leaves[name]
            if leaf.is_array
        ),
        tuple(
            (path, leaf.value)
            for part in leaves.values()
            for path, leaf in part
            if not leaf.is_array and leaf.value is not users
        ),
    )


class _Leaf:
    """Stands for a leaf, so that no value of the user's is taken for a container."""

    def __init__(self, value: Any, is_array: bool) -> None:
        self.value, self.is_array = value, is_array


def _leaves(name: str, value: Any) -> list[tuple[str, _Leaf]]:
    jax = jax_names.public()
    flat, _ = jax.tree_util.tree_flatten_with_path(value)
    return [(name + jax.tree_util.keystr(path), leaf) for path, leaf in flat]


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
