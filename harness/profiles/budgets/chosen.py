"""The functions that a budget counts: those whose name is one of its patterns."""

import difflib
import gc
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from harness.errors import UsageError
from harness.profiles.budgets.limits import EXPECTED, regex


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
            known: set[str] = set()
            for names in _names():
                if _fits(pattern, names):
                    break
                known.update(names)
            else:
                text = pattern[1].pattern
                labels = [names[0] for names in built]
                near = difflib.get_close_matches(text, labels, 1)
                near = near or difflib.get_close_matches(text, known, 1, 0.8)
                mean = f" Did you mean {near[0]!r}?" if near else ""
                raise UsageError(
                    f"{self._where}: functions has {text!r}, and no function of this process has "
                    f"that name.{mean}"
                )


def _fits(pattern: tuple[Any, re.Pattern[str]], names: Sequence[str]) -> bool:
    text, expression = pattern
    return any(name == text or expression.fullmatch(name) for name in names)


def _names() -> Iterator[tuple[str, ...]]:
    """Yield the names of every Python function, those inside others first made when called too."""
    seen: set[CodeType] = set()
    for function in gc.get_objects():
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
            places = (os.path.basename(file), file, os.path.relpath(file))
            yield (code.co_name, qualname, *(f"{place}:{qualname}" for place in places))
