"""The function of the program's own in which JAX's functions run one by one: what to jit."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from harness.profiles.model import Built
from harness.watch.events import Frame

_Key = tuple[str, str]

_OWN_SHARE = 0.25
"""Share of a function's programs that its own lines build, from which it is what computes.

One that mostly calls others that do (a loop over epochs) is not what to jit.
"""

_SHARE = 0.5
"""Share of small programs' seconds from which a function is named for them."""


class Enclosing:
    """Tells the outermost function to jit.

    Nothing is jitted below it so far, and programs outside jit are built by its own lines.
    """

    def __init__(self, builds: Iterable[Built]) -> None:
        self._jits: set[_Key] = set()
        """Functions that something jitted was called from."""
        within: Counter[_Key] = Counter()
        own: Counter[_Key] = Counter()
        for built in builds:
            keys = list(dict.fromkeys(map(_key, _program(built))))
            if not built.eager:
                self._jits.update(keys)
            else:
                within.update(keys)
                own.update([_key(built.call_site)])
        self._compute = {key for key in within if own[key] >= _OWN_SHARE * within[key]}

    def name_of(self, built: Built) -> str:
        """Return the name of the function to jit, empty where there is none."""
        for frame in _program(built):
            key, name = _key(frame), frame.function.rpartition(".")[2]
            if key in self._compute and key not in self._jits and not _runs_once(name):
                return name
        return ""

    def of_most(self, builds: Iterable[Built]) -> tuple[str, int]:
        """Return the function that takes most of these builds' time, and how many are in it.

        The name is empty where they are scattered.
        """
        counts: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        for built in builds:
            name = self.name_of(built)
            seconds[name] += built.build_ns
            counts[name] += built.times("compile")
        named = [name for name in seconds if name]
        best = max(named, key=lambda name: seconds[name], default="")
        if not best or seconds[best] < _SHARE * seconds.total():
            return "", 0
        return best, counts[best]


def _program(built: Built) -> Iterator[Frame]:
    """Yield the program's first frames: pytest and the like stand around them, libraries below."""
    begun = itertools.dropwhile(lambda frame: frame.origin != "program", built.frames)
    return itertools.takewhile(lambda frame: frame.origin == "program", begun)


def _key(frame: Frame) -> _Key:
    return frame.file, frame.function


def _runs_once(name: str) -> bool:
    """Return whether a function is a program or test as a whole, or none that can be jitted."""
    return name.startswith(("<", "__", "test")) or name == "main"
