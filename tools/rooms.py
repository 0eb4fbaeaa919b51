"""Through how many functions and rooms a baseline passes until it is paired.

    python -m tools.rooms [A B] [--results docs/example-results]

Compares two arms of stored results under Python's own profiler, and follows the calls of the
harness from the names of the arms until their rows are pairs. A room is a folder of `harness/`; a
return is a call that enters a room which was left before. Loading the results is not part of it:
they are read once, whoever compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import harness
from harness.frame.load import everything
from harness.verdicts.compare import comparison_between, named_arms
from harness.verdicts.pairs import pair

HOME = str(Path(harness.__file__).parent)


class Passed:
    """The functions that were called, in order, each with its room."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.ended = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call of a function of the harness."""
        code = frame.f_code
        self.ended |= event == "return" and code is pair.__code__
        if self.ended or event != "call" or not code.co_filename.startswith(HOME):
            return
        if not code.co_name.startswith("<"):
            room = code.co_filename.removeprefix(HOME).strip("/").split("/")[0]
            self.calls.append((room, code.co_qualname))


def main() -> None:
    words = [one for one in sys.argv[1:] if not one.startswith("--")] or [
        "jax=0.11.2",
        "jax=0.12.0.1",
    ]
    results = Path("docs/example-results")
    frame = everything(results)
    path = Passed()
    sys.setprofile(path)
    comparison_between(*named_arms(frame, *words[:2], results), results)
    sys.setprofile(None)
    functions = list(dict.fromkeys(path.calls))
    stays = [
        room for n, (room, _) in enumerate(path.calls) if not n or path.calls[n - 1][0] != room
    ]
    seen: set[str] = set()
    returns = 0
    for before, room in zip(["", *stays], stays, strict=False):
        returns += room in seen
        seen.add(before)
    for room in dict.fromkeys(stays):
        print(f"{room:10s} {', '.join(name for place, name in functions if place == room)}")
    print(f"{len(functions)} functions, {len({*stays})} rooms, {returns} returns")


if __name__ == "__main__":
    main()
