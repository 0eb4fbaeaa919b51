"""Nested tuples, lists and dicts of arrays, for code that runs without JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of nested tuples, lists and dicts, dicts by sorted key as JAX does.

    None is no leaf.
    """
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves(tree[key])
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from leaves(part)
    elif tree is not None:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return `tree` with `function` applied to each leaf, in the order of :func:`leaves`."""
    if isinstance(tree, dict):
        return {key: mapped(function, tree[key]) for key in sorted(tree)}
    if isinstance(tree, tuple | list):
        parts = [mapped(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return None if tree is None else function(tree)


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """Return `tree` with its leaves replaced by `values`, in the order of :func:`leaves`."""
    return mapped(lambda leaf: next(values), tree)
