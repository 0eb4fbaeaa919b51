"""What a budget can limit, and what is wrong with one that cannot be understood."""

from __future__ import annotations

import difflib
import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.errors import UsageError, nearest

if TYPE_CHECKING:  # this is in programs and tests: what reads profiles is loaded when it is needed
    from harness.profiles.causes.cause import Cause
    from harness.profiles.model import Built

CauseOf: TypeAlias = "Callable[[Built], Cause]"


def compile_s(built: Built) -> float:
    """Return the seconds that went into getting an executable, from XLA or the cache."""
    return sum(built.stage_ns(stage) for stage in ("compile", "load", "write")) / 1e9


LIMITS: dict[str, Callable[[Built, CauseOf], float]] = {
    "max_compiles": lambda built, _: built.times("compile"),
    "max_traces": lambda built, _: built.times("trace") > 0,
    "max_lowers": lambda built, _: built.times("lower"),
    "max_builds": lambda built, _: 1,
    "max_eager": lambda built, _: built.times("compile"),
    "max_unexplained": lambda built, cause_of: cause_of(built).kind == "unexplained",
    "max_compile_seconds": lambda built, _: compile_s(built),
}
"""What each counts of a build; :func:`harness.budget` describes them. All but the seconds are
counts."""

NAMES = tuple(LIMITS)

Pattern = str | re.Pattern[str]

EXPECTED = (
    "expected a name such as 'loss' or 'train.py:loss', a regular expression of the whole name, or "
    "a list of them."
)


def limits_of(values: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return the limits in a mapping from name to number; None is no limit.

    Raises:
        UsageError: if a name is not known, or a value is not a number that limits anything.
    """
    for name in values:
        if name not in NAMES:
            raise UsageError(unknown(where, name, NAMES))
    given = {name: values[name] for name in NAMES if values.get(name) is not None}
    return {name: _number(name, value, where) for name, value in given.items()}


def unknown(where: str, name: str, names: Sequence[str]) -> str:
    """Return what is said of a name that is not known."""
    return f"{where}: {name!r} is not known; expected {', '.join(names)}.{nearest(name, names)}"


def _number(name: str, value: Any, where: str) -> float:
    counts = name != "max_compile_seconds"
    fits = isinstance(value, Integral if counts else Real) and not isinstance(value, bool)
    if not fits or not 0 <= value <= sys.float_info.max:
        expected = "a whole number, 0 or more" if counts else "a number of seconds, 0 or more"
        raise UsageError(f"{where}: {name} is {value!r}; expected {expected}.")
    return int(value) if counts else float(value)


def regex(pattern: Any, where: str) -> re.Pattern[str]:
    """Return a regular expression.

    Raises:
        UsageError: if it is none.
    """
    if not isinstance(pattern, str | re.Pattern) or not pattern:
        raise UsageError(f"{where}: functions has {pattern!r}; {EXPECTED}")
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{where}: {pattern!r} is no regular expression: {error}. Put a backslash before a "
            "character that stands for itself."
        ) from None
    if isinstance(expression.pattern, bytes):
        raise UsageError(f"{where}: functions has {pattern!r}; {EXPECTED}")
    return expression


class Chosen:
    """Tells whether a function is meant, by any of its names.

    Args:
        patterns: a name or regular expression (of the whole name), or several; None for all.
        where: what the user wrote it in, for the message.

    Raises:
        UsageError: if a pattern is none.
    """

    def __init__(self, patterns: Any, where: str) -> None:
        several = [patterns] if isinstance(patterns, str | re.Pattern) else patterns
        if several is not None and (not isinstance(several, list | tuple | set) or not several):
            raise UsageError(f"{where}: functions is {patterns!r}; {EXPECTED}")
        self._where = where
        self._patterns = None if several is None else [(one, regex(one, where)) for one in several]

    def __call__(self, names: Sequence[str]) -> bool:
        """Return whether a function of these names is meant."""
        return self._patterns is None or any(_fits(one, names) for one in self._patterns)

    def check(self, built: Iterable[Sequence[str]]) -> None:
        """Refuse a pattern that can mean no function: a budget on it would pass for ever.

        Args:
            built: the names of each function that was built. What else a pattern may mean is any
                function or code of this process, jitted or not, called or not.

        Raises:
            UsageError: if a pattern is the name of none.
        """
        built = list(built)
        for pattern in self._patterns or ():
            if any(_fits(pattern, names) for names in built):
                continue
            all_names: set[str] = set()
            for names in _names():
                if _fits(pattern, names):
                    break
                all_names.update(names)
            else:
                text = pattern[1].pattern
                labels = [names[0] for names in built]
                near = difflib.get_close_matches(text, labels, 1)
                near = near or difflib.get_close_matches(text, all_names, 1, 0.8)
                mean = f" Did you mean {near[0]!r}?" if near else ""
                raise UsageError(
                    f"{self._where}: functions has {text!r}, and no function of this process has "
                    f"that name.{mean}"
                )


def _fits(pattern: tuple[Any, re.Pattern[str]], names: Sequence[str]) -> bool:
    text, expression = pattern
    return any(name == text or expression.fullmatch(name) for name in names)


def _objects() -> Iterator[object]:
    """Yield what may be a function: all that the collector knows, or that modules hold.

    The collector does not list what a program has frozen.
    """
    yield from gc.get_objects()
    if gc.get_freeze_count():
        for module in list(sys.modules.values()):
            for held in list(getattr(module, "__dict__", {}).values()):
                inside = [held, *(vars(held).values() if issubclass(type(held), type) else ())]
                yield from inside
                # What is jitted, a method of a class. A module is asked no more than its names: on
                # Python 3.12 the referents of `_asyncio` have no end where a future was awaited.
                others = (one for one in inside if not issubclass(type(one), ModuleType))
                yield from gc.get_referents(*others)


def _names() -> Iterator[tuple[str, ...]]:
    """Yield the names of every Python function, those inside others first made when called too."""
    seen: set[CodeType] = set()
    places: dict[str, set[str]] = {}
    for function in _objects():
        if type(function) is not FunctionType:  # a proxy's class may be that of something dead
            continue
        yield (function.__name__,)
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            if code in seen:
                continue
            seen.add(code)
            codes += (inner for inner in code.co_consts if isinstance(inner, CodeType))
            file, qualname = code.co_filename, code.co_qualname
            if file not in places:
                places[file] = {os.path.basename(file), file, os.path.relpath(file)}
            yield (code.co_name, qualname, *(f"{place}:{qualname}" for place in places[file]))
