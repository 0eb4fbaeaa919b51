"""Where the user's source made an equation, and whose code a frame runs.

A program that is followed runs this: it needs the standard library alone.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, NamedTuple

from harness.jaxhooks.call_sites import line_of, origin_of
from harness.program.calls import is_ours

LIBRARY, OURS, USERS, EQUATION = range(4)

EQUATION_NAME = "eqn"
"""What JAX's functions that work on an equation call it (jax 0.10 to 0.12)."""


class Place(NamedTuple):
    """A line of a source."""

    function: str
    file: str
    line: int


class Codes(dict[int, tuple[int, CodeType, dict[int, Place]]]):
    """What is known of code, by its identity: to hash code is slow."""

    def known(self, code: CodeType) -> tuple[int, CodeType, dict[int, Place]]:
        """Return whose code it is, the code itself, and its places that are known."""
        entry = self.get(id(code))
        if entry is None:  # which keeps the code, and so its identity
            entry = self[id(code)] = _kind(code), code, {}
        return entry

    def place(self, code: CodeType, at: int) -> Place:
        """Return where an instruction of a function is."""
        places = self.known(code)[2]
        if at not in places:
            places[at] = Place(code.co_qualname, code.co_filename, line_of(code, at))
        return places[at]

    def made_at(self, traceback: Any) -> tuple[Place, ...]:
        """Return the lines of the user's that made an equation, the outermost first."""
        if traceback is None:
            return ()
        frames = zip(*traceback.raw_frames(), strict=True)
        lines = [self.place(*each) for each in frames if self.known(each[0])[0] == USERS]
        return tuple(lines[::-1])


_KNOWN = Codes()


def made_at(traceback: Any) -> tuple[Place, ...]:
    """Return function, file and line of each line of the user's that made an equation."""
    return _KNOWN.made_at(traceback)


def place_of(code: CodeType, at: int) -> Place:
    """Return where an instruction of a function is."""
    return _KNOWN.place(code, at)


def is_users(file: str) -> bool:
    """Tell whether a file is the user's: of no library, Python's, ours, nor generated code."""
    return origin_of(file) == "program" and not file.startswith(("<string>", "<__array_function"))


def _kind(code: CodeType) -> int:
    if is_ours(code.co_filename):
        return OURS
    if is_users(code.co_filename):
        return USERS
    names = (*code.co_varnames, *code.co_cellvars)
    return EQUATION if EQUATION_NAME in names else LIBRARY
