"""Remedies that need no edit of a program: functions are jitted, or called, otherwise.

Each is a mapping of texts: `how` (:data:`HOW`), the `file` and `line` of the function's code, the
`argument`, and for `strong` its `dtype`.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.watch.call_sites import code_of

VARIABLE = "HARNESS_PROFILE_REMEDIES"
"""The environment variable that holds them, as JSON."""

HOW = ("dynamic", "strong")
"""A static argument is made dynamic; a Python number or weakly typed array is given a dtype."""


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
            if code is not None and (code.co_filename, code.co_firstlineno) == _place(one)
        ]
        for one in mine:
            if one["how"] == "dynamic":
                options = without_static(function, options, one["argument"])
        made = jit(*functions, **options)
        for one in mine:
            if one["how"] == "strong":
                made = Strong(made, _position(function, one["argument"]), one, jax.numpy.asarray)
        return made

    jax.jit = remedied


def _place(remedy: Mapping[str, Any]) -> tuple[str, int]:
    return remedy["file"], remedy["line"]


def _position(function: Callable[..., Any], name: str) -> int:
    return list(inspect.signature(function).parameters).index(name)


def without_static(
    function: Callable[..., Any], options: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Return the options of `jax.jit` with one static argument less, by number and by name."""
    number, count = _position(function, name), len(inspect.signature(function).parameters)
    left = dict(options)
    numbers, names = _several(left.get("static_argnums")), _several(left.get("static_argnames"))
    left["static_argnums"] = [one for one in numbers if one % count != number] or None
    left["static_argnames"] = [one for one in names if one != name] or None
    return left


def _several(given: Any) -> Sequence[Any]:
    return () if given is None else (given,) if isinstance(given, int | str) else tuple(given)


class Strong:
    """A jitted function that is called with one argument always of one dtype."""

    def __init__(
        self, jitted: Any, position: int, remedy: Mapping[str, Any], asarray: Callable[..., Any]
    ) -> None:
        self.__wrapped__ = jitted
        self._position, self._name = position, remedy["argument"]
        self._dtype, self._asarray = remedy["dtype"], asarray

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        at = self._position
        if at < len(args):
            args = (*args[:at], self._strong(args[at]), *args[at + 1 :])
        elif self._name in kwargs:
            kwargs = {**kwargs, self._name: self._strong(kwargs[self._name])}
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Be the jitted function in all else."""
        return getattr(self.__wrapped__, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Be a method where a class has it."""
        return self if instance is None else functools.partial(self, instance)

    def _strong(self, value: Any) -> Any:
        weak = isinstance(value, bool | int | float | complex) or getattr(value, "weak_type", False)
        return self._asarray(value, self._dtype) if weak else value
