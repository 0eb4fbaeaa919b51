"""Through how many functions and rooms a datum passes until it is what is shown.

    python -m tools.rooms [A B]        two arms of stored results, until their rows are paired
    python -m tools.rooms --profile    an event of a recording, until its line is printed

Of results, all functions of the harness that are called in between are counted, of two arms that
are compared. Of a recording, those through whose hands the event goes: what a function makes of it,
or of what another has made of it, the longest such way from the event to the line. Records that
hold a whole recording are no hands. A room is a folder of `harness/`; a return is a step into a
room that was left before. Reading the results and the files is not part of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import harness
from harness.cli.profile.answer import answer
from harness.frame.load import everything
from harness.frame.pairs import pair
from harness.jaxhooks.events import Build
from harness.profiles.model import Process
from harness.profiles.recorded import Recorded, read
from harness.verdicts.compare import comparison_of
from tests.profiles.made import Made

HOME = str(Path(harness.__file__).parent)

Call = tuple[str, str]
"""The room and the name of a function."""


def called(frame: FrameType) -> Call | None:
    """Return the function of the harness that a frame runs."""
    code = frame.f_code
    if not code.co_filename.startswith(HOME) or code.co_name.startswith("<"):
        return None
    room = code.co_filename.removeprefix(HOME).strip("/").split("/")[0]
    return room, code.co_qualname


class Passed:
    """The functions that were called, in order, until rows are pairs."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.ended = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call."""
        self.ended |= event == "return" and frame.f_code is pair.__code__
        if not self.ended and event == "call" and (one := called(frame)):
            self.calls.append(one)


def held(value: Any, level: int = 2) -> Iterator[Any]:
    """Yield a value, and what it holds where it is a collection."""
    yield value
    inside = value.values() if isinstance(value, dict) else value
    if level and isinstance(value, dict | list | tuple | set):
        for one in inside:
            yield from held(one, level - 1)


class Followed:
    """What functions have made of the second build of a recording, each with its way."""

    def __init__(self) -> None:
        self.ways: dict[int, tuple[Any, tuple[Call, ...]]] = {}

    def __call__(self, frame: FrameType, event: str, made: Any) -> None:
        """Take note of what a function returns of what it was given."""
        if event != "return" or made is None or isinstance(made, bool | int | float | Recorded):
            return
        if isinstance(made, Build) and made.id == 2:
            self.ways.setdefault(id(made), (made, ()))
        one = called(frame)
        if one is None or id(made) in self.ways or isinstance(made, Process):
            return
        code, own = frame.f_code, frame.f_locals
        given = [own.get(name) for name in code.co_varnames[: code.co_argcount]]
        ways = [
            self.ways[id(each)][1] for value in given for each in held(value) if self.is_of(each)
        ]
        if ways:
            way = (*max(ways, key=len), one)
            for each in held(made):
                if each is not made and isinstance(each, bool | int | float | None):
                    continue
                self.ways.setdefault(id(each), (each, way))

    def is_of(self, value: Any) -> bool:
        return id(value) in self.ways and self.ways[id(value)][0] is value


def of_an_event() -> list[Call]:
    """Return the longest way of a build to the line that names it."""
    made = Made()
    for size in (3, 4, 5):
        made.build("step", shape=size)
    followed = Followed()
    with tempfile.TemporaryDirectory() as folder:
        where = made.write(Path(folder, "profile"))
        answer(read(where))  # what is imported only now
        sys.setprofile(followed)
        lines = answer(read(where))
        sys.setprofile(None)
    [line] = [one for one in lines if "`step` was compiled" in one]
    return list(dict.fromkeys(followed.ways[id(line)][1]))


def of_arms(a: str, b: str) -> list[Call]:
    """Return the functions that are called until two arms are pairs."""
    results = Path("docs/example-results")
    frame = everything(results)
    path = Passed()
    sys.setprofile(path)
    comparison_of(frame, a, b, results)
    sys.setprofile(None)
    return path.calls


def show(calls: Sequence[Call]) -> None:
    functions = list(dict.fromkeys(calls))
    stays = [room for n, (room, _) in enumerate(calls) if not n or calls[n - 1][0] != room]
    left: set[str] = set()
    returns = 0
    for before, room in zip(["", *stays], stays, strict=False):
        returns += room in left
        left.add(before)
    for room in dict.fromkeys(stays):
        print(f"{room:10s} {', '.join(name for place, name in functions if place == room)}")
    print(f"{len(functions)} functions, {len({*stays})} rooms, {returns} returns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=["jax=0.11.2", "jax=0.12.0.1"])
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    show(of_an_event() if given.profile else of_arms(*given.arms))


if __name__ == "__main__":
    main()
