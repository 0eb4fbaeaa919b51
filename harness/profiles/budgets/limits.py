"""What a budget can limit, and what is wrong with one that cannot be understood."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from harness.errors import UsageError

WHOLE_ONLY = ("max_eager",)
"""Limits of everything together: JAX's own functions are not told apart."""

Pattern = str | re.Pattern[str]


@dataclass(frozen=True)
class Limits:
    """How much may be built; None is no limit. All but the seconds are counts."""

    max_compiles: int | None = None
    """Executables that JAX asked for, compiled or loaded from the persistent cache."""
    max_traces: int | None = None
    max_lowers: int | None = None
    max_builds: int | None = None
    """Calls in which anything was traced, lowered or compiled."""
    max_eager: int | None = None
    """Executables of JAX's own functions, called outside `jax.jit`: `jnp.ones`, `x + 1`."""
    max_unexplained: int | None = None
    """Builds whose cause the profile does not know."""
    max_compile_seconds: float | None = None
    """The compile stage, loading included; the one limit that a slower machine can break."""

    def given(self) -> Iterator[tuple[str, float]]:
        """Yield (name, value) of what is limited."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                yield field.name, value

    def __bool__(self) -> bool:
        return any(True for _ in self.given())


NAMES = tuple(field.name for field in fields(Limits))


def limits_of(values: Mapping[str, Any], where: str, known: Sequence[str] = NAMES) -> Limits:
    """Return the limits in a mapping from name to number.

    Args:
        values: what the user wrote.
        where: what the user wrote it in, for the message.
        known: the names that are expected there.

    Raises:
        UsageError: if a name is not known, or a value is not a number that limits anything.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(unknown(where, name, known))
        if value is not None:
            found[name] = _number(name, value, where)
    return Limits(**found)


def unknown(where: str, name: str, known: Sequence[str]) -> str:
    """Return what is said of a name that is not known."""
    if name in WHOLE_ONLY:
        return f"{where}: {name} limits the whole program, not one function: put it under [total]."
    near = difflib.get_close_matches(name, known, 1)
    mean = f" Did you mean {near[0]}?" if near else ""
    return f"{where}: {name!r} is not known; expected {', '.join(known)}.{mean}"


def matcher(patterns: Any, where: str) -> Callable[[Sequence[str]], bool]:
    """Return what tells whether one of a function's names is meant.

    Args:
        patterns: a name or regular expression (of the whole name), or several; None for all.
        where: what the user wrote it in, for the message.

    Raises:
        UsageError: if a pattern is none.
    """
    if patterns is None:
        return lambda names: True
    several = [patterns] if isinstance(patterns, str | re.Pattern) else patterns
    if not isinstance(several, Sequence) or not several:
        raise UsageError(f"{where}: functions is {patterns!r}; {_EXPECTED}")
    compiled = [(pattern, regex(pattern, where)) for pattern in several]

    def matches(names: Sequence[str]) -> bool:
        return any(
            name == text or expression.fullmatch(name)
            for text, expression in compiled
            for name in names
        )

    return matches


_EXPECTED = (
    "expected a name such as 'loss' or 'train.py:loss', a regular expression of the whole name, or "
    "a list of them."
)


def regex(pattern: Any, where: str) -> re.Pattern[str]:
    """Return a regular expression.

    Raises:
        UsageError: if it is none.
    """
    if not isinstance(pattern, str | re.Pattern) or not pattern:
        raise UsageError(f"{where}: functions has {pattern!r}; {_EXPECTED}")
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{where}: {pattern!r} is no regular expression: {error}. Put a backslash before a "
            "character that stands for itself."
        ) from None
    if isinstance(expression.pattern, bytes):
        raise UsageError(f"{where}: functions has {pattern!r}; {_EXPECTED}")
    return expression


def _number(name: str, value: Any, where: str) -> float | int:
    counts = not name.endswith("_seconds")
    fits = isinstance(value, Integral if counts else Real) and not isinstance(value, bool)
    if not fits or not math.isfinite(value) or value < 0:
        expected = "a whole number, 0 or more" if counts else "a number of seconds, 0 or more"
        raise UsageError(f"{where}: {name} is {value!r}; expected {expected}.")
    return int(value) if counts else float(value)
