"""Remedies that need no edit of a program: functions are jitted, or called, otherwise.

Each is a mapping: `how`, the `file` and `line` of the function's code, and

- `dynamic`: the static `argument` that is made dynamic;
- `strong`: of `leaves`, by their paths, the dtype that a Python number or what is weakly typed is
  given;
- `padded`: of `leaves`, by their paths, the axes that are filled up with zeros to a power of two.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from harness.jaxhooks.call_sites import code_of, parameter_name

VARIABLE = "HARNESS_PROFILE_REMEDIES"
"""The environment variable that holds them, as JSON."""


def apply(text: str) -> None:
    """Let `jax.jit` apply remedies to the functions that are jitted from here on."""
    jax: Any = sys.modules["jax"]  # what records has seen it imported
    remedies, jit = json.loads(text), jax.jit

    @functools.wraps(jit)
    def remedied(*functions: Any, **options: Any) -> Any:
        if not functions:  # a decorator with options
            return functools.partial(remedied, **options)
        function = functions[0]
        code = code_of(function)
        mine = [
            one
            for one in remedies
            if code and (code.co_filename, code.co_firstlineno) == (one["file"], one["line"])
        ]
        for one in mine:
            if one["how"] == "dynamic":
                options = without_static(function, options, one["argument"])
        made = jit(*functions, **options)
        for one in mine:
            if one["how"] != "dynamic":
                made = Remedied(made, inspect.signature(function), one)
        return made

    jax.jit = remedied


def without_static(function: Any, options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the options of `jax.jit` with one static argument less, by number and by name."""
    parameters = list(inspect.signature(function).parameters)
    number, count = parameters.index(name), len(parameters)
    left = dict(options)
    numbers, names = _several(left.get("static_argnums")), _several(left.get("static_argnames"))
    left["static_argnums"] = [one for one in numbers if one % count != number] or None
    left["static_argnames"] = [one for one in names if one != name] or None
    return left


def _several(given: Any) -> Sequence[Any]:
    return () if given is None else (given,) if isinstance(given, int | str) else tuple(given)


class Remedied:
    """A jitted function that is called with other arguments."""

    def __init__(self, jitted: Any, signature: Any, remedy: Mapping[str, Any]) -> None:
        self.__wrapped__ = jitted
        self._signature, self._remedy = signature, remedy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        names = (parameter_name(self._signature, number) for number in range(len(args)))
        args = tuple(map(self._changed, names, args))
        kwargs = {name: self._changed(name, value) for name, value in kwargs.items()}
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _changed(self, name: str, value: Any) -> Any:
        jax: Any = sys.modules["jax"]
        how, leaves = self._remedy["how"], self._remedy["leaves"]

        def changed(path: Any, leaf: Any) -> Any:
            wanted = leaves.get(name + jax.tree_util.keystr(path))
            if not wanted or isinstance(leaf, jax.core.Tracer):
                return leaf
            if how == "padded":
                return _padded(leaf, wanted)
            weak = isinstance(leaf, bool | int | float | complex)
            weak = weak or getattr(leaf, "weak_type", False)
            return jax.numpy.asarray(leaf, wanted) if weak else leaf

        if any(path.startswith(name) for path in leaves):
            return jax.tree_util.tree_map_with_path(changed, value)
        return value


def _padded(array: Any, axes: Sequence[int]) -> Any:
    """Return an array filled up with zeros; NumPy does it, so that JAX builds nothing for it."""
    numpy: Any = sys.modules["numpy"]
    more = [power_of_two(n) - n if axis in axes else 0 for axis, n in enumerate(array.shape)]
    filled = numpy.pad(numpy.asarray(array), [(0, n) for n in more])
    return filled if isinstance(array, numpy.ndarray) else sys.modules["jax"].device_put(filled)


def power_of_two(size: int) -> int:
    """Return the least power of two that is not below a size; 0 of 0."""
    return 1 << (size - 1).bit_length() if size else 0
