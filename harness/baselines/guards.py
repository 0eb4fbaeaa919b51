"""Mistakes that make a comparison worthless, and how each is noticed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax  # pytrees only
import numpy as np

from harness.baselines.equivalence import is_inexact


def names_of(arguments: tuple[Any, ...], parameters: Sequence[str]) -> list[str]:
    """Return a name for each leaf of the arguments: `w`, or `params['w']`."""
    names = []
    for index, argument in enumerate(arguments):
        parameter = parameters[index] if index < len(parameters) else f"argument {index}"
        for path, _ in jax.tree_util.tree_flatten_with_path(argument)[0]:
            names.append(f"{parameter}{jax.tree_util.keystr(path)}")
    return names


def constant_inputs(arguments: tuple[Any, ...], names: Sequence[str]) -> list[str]:
    """Return which inputs are the same number everywhere, e.g. all zeros or ones.

    Hardware computes on them faster than on data.
    """
    leaves = jax.tree_util.tree_leaves(arguments)
    return [
        f"constant inputs: {name} is {leaf.reshape(-1)[0]} everywhere; expected random data"
        for name, leaf in zip(names, leaves, strict=True)
        if leaf.size > 1 and is_inexact(leaf.dtype) and bool(np.all(leaf == leaf.reshape(-1)[0]))
    ]


def digest(tree: Any) -> list[int]:
    """Return a checksum of each NumPy array of a pytree."""
    return [
        zlib.crc32(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
        for leaf in map(np.asarray, jax.tree_util.tree_leaves(tree))
    ]


def mutated(before: Sequence[int], after: Sequence[int], names: Sequence[str]) -> list[str]:
    """Return which inputs a call has changed."""
    return [
        f"mutated input: {name} is not what it was before the call"
        for name, old, new in zip(names, before, after, strict=True)
        if old != new
    ]


def compiled_inside(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return what a backend compiled in the timed region, by its own counters."""
    more = {name: after[name] - before.get(name, 0) for name in after}
    grown = [f"{count} {name}" for name, count in more.items() if count]
    return [f"compilation inside the timed region: {', '.join(grown)}"] if grown else []


def entry_parameters(hlo: str) -> int:
    """Return how many parameters the entry computation of an HLO module's text has."""
    entry = re.search(r"^ENTRY .*?^}", hlo, re.MULTILINE | re.DOTALL)
    return len(re.findall(r" parameter\(\d+\)", entry[0])) if entry else 0


def unused_arguments(hlo: str, jaxpr: Any, names: Sequence[str]) -> list[str]:
    """Return the inputs that the program XLA built does not have.

    `hlo` is its text, empty where the back end gives none; by `jaxpr` the unused can be named.
    """
    there = entry_parameters(hlo)
    if not hlo or there >= len(names):
        return []
    jaxpr = jaxpr.jaxpr
    used = {id(v) for equation in jaxpr.eqns for v in equation.invars}
    used |= {id(v) for v in jaxpr.outvars}
    unused = [name for name, v in zip(names, jaxpr.invars, strict=True) if id(v) not in used]
    if not unused:  # used only by what XLA or JAX found to be without effect
        return [f"an argument is not used by the program XLA built: {there} of {len(names)} are"]
    return [f"argument {name} is not used by the program XLA built" for name in unused]
