"""A function that its user has jitted already: measured as that object, with all its options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any


class Jitted:
    """A jitted object as it is called, traced and lowered here.

    JAX's `jax.jit` gives one with `trace` and `lower`; another library's may have `lower` alone,
    which traces as well, and want arrays where JAX does with shapes (`equinox.filter_jit`).

    Args:
        function: the object.
        before: the arguments that a bound method or a partial puts before others.
        keywords: those that a partial gives by keyword.
        names: by which it takes the last of its arguments.
    """

    def __init__(
        self,
        function: Any,
        before: tuple[Any, ...] = (),
        keywords: Mapping[str, Any] | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.function, self.before, self.keywords = function, before, dict(keywords or {})
        self.names = names
        self.call = self.given(function)
        """What its user calls; nothing of ours is in between where there are no `names`."""
        self.lower = self.given(function.lower)
        self.trace = self.given(function.trace) if hasattr(function, "trace") else None

    def given(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        """Return a verb of the function, or of what stands for it, called as the user calls it."""
        if self.before or self.keywords:
            verb = functools.partial(verb, *self.before, **self.keywords)
        return by_keyword(verb, self.names)

    @property
    def takes_shapes(self) -> bool:
        """Whether it is one of JAX's own, which needs no arrays to be traced."""
        return type(self.function).__module__.partition(".")[0] in ("jax", "jaxlib", "builtins")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it as its user does."""
        return self.call(*args, **keywords)


def by_keyword(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function that takes the last arguments of another by position."""
    if not names:
        return function

    def called(*args: Any, **static: Any) -> Any:
        last = len(args) - len(names)
        return function(*args[:last], **dict(zip(names, args[last:], strict=True)), **static)

    # Not `functools.wraps`: JAX would look for the names in the signature of the other.
    called.__name__ = called.__qualname__ = getattr(function, "__name__", "called")
    return called


def find(function: Callable[..., Any], names: tuple[str, ...] = ()) -> Jitted | None:
    """Return a function as the jitted object that it is; None for one that is not jitted.

    `names` are those by which it takes the last of its arguments.
    """
    if isinstance(function, functools.partial):
        inner = find(function.func)
        before, keywords = function.args, function.keywords
    elif hasattr(function, "__func__") and hasattr(function, "__self__"):
        inner = find(function.__func__)
        before, keywords = (function.__self__,), {}
    elif hasattr(function, "__wrapped__") and callable(getattr(function, "lower", None)):
        return Jitted(function, names=names)
    else:
        return None
    if inner is None:
        return None
    keywords = {**inner.keywords, **keywords}
    return Jitted(inner.function, (*inner.before, *before), keywords, names)
