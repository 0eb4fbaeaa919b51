"""Count the calls that Python makes: of a step, in a pass that nobody times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from harness.program.collector import gc_off
from harness.program.fact import Fact

_OURS = f"{Path(__file__).parents[1]}/"


def calls(step: Callable[[], object]) -> int:
    """Return how many calls of Python and C functions a step makes in this thread.

    A generator that goes on counts as a call. Python's garbage collector, which calls what it finds
    when it likes, is off. What the harness itself calls meanwhile, to hear
    JAX's events, is left out. From Python 3.12 on, code that ran under such a count is slower for
    a while: the interpreter has forgotten what it had learnt of it.
    """
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and not frame.f_code.co_filename.startswith(_OURS):
            count += 1

    heard(step, note)
    return count


def heard(step: Callable[[], object], note: Callable[[FrameType, str, object], None]) -> None:
    """Run a step while `note` hears of each call and return, and no garbage is collected.

    It hears of no `__eq__` nor what that calls: how often hashes meet in a table is chance.
    """
    before, inside = sys.getprofile(), 0

    def hear(frame: FrameType, event: str, argument: object) -> None:
        nonlocal inside
        if frame.f_code.co_name == "__eq__":
            inside += (event == "call") - (event == "return")
        elif not inside:
            note(frame, event, argument)

    with gc_off():
        sys.setprofile(hear)
        try:
            step()
        finally:
            sys.setprofile(before)


def is_ours(file: str) -> bool:
    """Tell whether code is of the harness."""
    return file.startswith(_OURS)


def _calls(doing: str, rank: int) -> Fact:
    name, verb = f"{doing}_calls", {"trace": "tracing", "lower": "lowering"}[doing]
    return Fact(
        name=name,
        source="calls",
        meaning=f"calls that Python makes while {verb}, of Python and C functions",
        noun=f"Python call while {verb}",
        nouns=f"Python calls while {verb}",
        read=lambda counts: counts.get(name),
        rank=rank,
        column=True,
    )


TRACE = _calls("trace", 7)
LOWER = _calls("lower", 8)
