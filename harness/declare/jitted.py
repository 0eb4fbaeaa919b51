"""A function that its user has jitted already: measured as that object, with all its options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any


class Jitted:
    """A jitted object, and the arguments that a bound method or a partial puts before others.

    JAX's `jax.jit` gives one with `trace` and `lower`; another library's may have `lower` alone,
    which traces as well, and want arrays where JAX does with shapes (`equinox.filter_jit`).
    """

    def __init__(
        self, function: Any, before: tuple[Any, ...] = (), keywords: Mapping[str, Any] | None = None
    ) -> None:
        self.function = function
        self.before = before
        self.keywords = dict(keywords or {})
        functools.update_wrapper(self, function, updated=())

    @property
    def is_jax(self) -> bool:
        """Whether it is one of JAX's own, which has a trace step and takes shapes for arrays."""
        return hasattr(self.function, "trace")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it as its user does."""
        return self.function(*self.before, *args, **self.keywords, **keywords)

    def trace(self, *args: Any, **keywords: Any) -> Any:
        """Return a `jax.stages.Traced`."""
        return self.function.trace(*self.before, *args, **self.keywords, **keywords)

    def lower(self, *args: Any, **keywords: Any) -> Any:
        """Return what the object's own `lower` does: a `jax.stages.Lowered`, or what holds one."""
        return self.function.lower(*self.before, *args, **self.keywords, **keywords)


def find(function: Callable[..., Any]) -> Jitted | None:
    """Return a function as the jitted object that it is; None for one that is not jitted."""
    if isinstance(function, functools.partial):
        inner = find(function.func)
        before, keywords = function.args, function.keywords
    elif hasattr(function, "__func__") and hasattr(function, "__self__"):
        inner = find(function.__func__)
        before, keywords = (function.__self__,), {}
    elif hasattr(function, "__wrapped__") and callable(getattr(function, "lower", None)):
        return Jitted(function)
    else:
        return None
    if inner is None:
        return None
    return Jitted(inner.function, (*inner.before, *before), {**inner.keywords, **keywords})
