"""What the user called, where `equinox.filter_jit` stands between.

It hands JAX a function of its own, `fun_wrapped(dynamic_donate, dynamic_nodonate, static)`, with
the arrays of all arguments in two dictionaries and everything else in one static tuple: in JAX's
words every change is one of `static`. Written for equinox 0.13; what does not look like it is
described in JAX's words.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from harness.watch import call_sites
from harness.watch.statics import name_of

_PARTS = ("first", "fun", "rest")
"""Keys of the dictionaries, in the order in which JAX flattens them."""


class Call(NamedTuple):
    """A call in the user's own words."""

    function: Any
    """What `filter_jit` was given."""
    tree: str
    """The structure of the arguments, as in `events.Arguments.tree`."""
    paths: tuple[str, ...]
    """A name for each array, in JAX's order."""
    statics: tuple[tuple[str, Any], ...]
    """Everything that is no array, by its name."""


def call_of(function: Any, args: Sequence[Any]) -> Call | None:
    """Return the user's call, None where JAX was called by another than `filter_jit`.

    Args:
        function: what `jax.jit` was given.
        args: what it was called with.
    """
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
    users = _users(dynamic, dict(zip(("fun", "first", "rest"), static, strict=True)))
    paths = [
        path
        for part in (donated, kept)
        for name in sorted(part)
        for path, _, is_array in users.leaves[name]
        if is_array
    ]
    return Call(
        users.function,
        ", ".join(users.trees),
        tuple(paths),
        tuple(
            (path, value)
            for name in ("fun", "first", "rest")
            for path, value, is_array in users.leaves[name]
            if not is_array and value is not users.function
        ),
    )


class _Users(NamedTuple):
    function: Any
    trees: list[str]
    leaves: dict[str, list[tuple[str, Any, bool]]]
    """(path, value, is it an array), in order."""


class _Leaf:
    """Stands for a leaf, so that no value of the user's is taken for a container."""

    def __init__(self, value: Any, is_array: bool) -> None:
        self.value, self.is_array = value, is_array


def _users(dynamic: Mapping[str, Any], static: Mapping[str, Any]) -> _Users:
    parts = {}
    for name in _PARTS:
        fixed, tree = static[name]
        leaves = [
            _Leaf(array, True) if value is None else _Leaf(value, False)
            for array, value in zip(dynamic[name], fixed, strict=True)
        ]
        parts[name] = tree.unflatten(leaves)
    fixed, tree = static["fun"]
    both = zip(dynamic["fun"], fixed, strict=True)
    function = tree.unflatten([array if value is None else value for array, value in both])
    signature = _signature(function)
    rest, keywords = parts["rest"]
    positional = [parts["first"], *rest][:-1]  # equinox puts a None behind the last
    named = [(name_of(signature, n), value) for n, value in enumerate(positional)]
    named += [(f"{name}=", value) for name, value in keywords.items()]
    own = call_sites.name_of(function) or type(function).__name__
    found: dict[str, list[tuple[str, Any, bool]]] = {"first": [], "rest": []}
    found["fun"] = _leaves(own, parts["fun"])
    trees = [] if isinstance(parts["fun"], _Leaf) else [f"{own}: {_structure(parts['fun'])}"]
    for number, (name, value) in enumerate(named):
        part = "first" if number == 0 and positional else "rest"
        found[part] += _leaves(name.rstrip("="), value)
        trees.append(name if isinstance(value, _Leaf) else f"{name}: {_structure(value)}")
    return _Users(function, trees, found)


def _leaves(name: str, value: Any) -> list[tuple[str, Any, bool]]:
    import jax

    flat, _ = jax.tree_util.tree_flatten_with_path(value)
    return [(name + jax.tree_util.keystr(path), leaf.value, leaf.is_array) for path, leaf in flat]


def _structure(value: Any) -> str:
    """Return a structure, with `*` for each array and each static value."""
    import jax

    return str(jax.tree_util.tree_structure(value))


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
