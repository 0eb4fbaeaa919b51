"""What a program builds now, in words, for a terminal and a notebook."""

from harness.profiles.live import Now, State
from harness.records.printable import printable
from harness.records.units import counted, seconds_text

DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}


def line_of(state: State, now_ns: int, elapsed_s: float) -> str:
    """Return the state as a line: what is being built, else the last build; then the sums."""
    parts = []
    if state.running:
        others = len(state.running) - 1
        parts.append(doing(state.running[0], now_ns) + (f", and {others} more" if others else ""))
    builds = counted(state.builds, "build")
    parts.append(f"{builds}, {seconds_text(state.seconds)} of {seconds_text(elapsed_s)}")
    if not state.running and state.last is not None:
        last, most = state.last, next(iter(state.costliest), None)
        parts.append(f"last {named(last.function, last.place)}, {seconds_text(last.seconds)}")
        if most is not None and most.builds > 1:
            parts.append(f"most `{printable(most.function, '')}`, {seconds_text(most.seconds)}")
    return " · ".join(parts)


def doing(now: Now, now_ns: int) -> str:
    """Return a build that is going on as text: compiling `loss` (train.py:88) for 12 s, 4th time.

    The first time is not called so.
    """
    took = seconds_text(max(0, now_ns - now.begin_ns) / 1e9)
    text = f"{DOING.get(now.stage, 'building')} {named(now.function, now.place)} for {took}"
    return f"{text}, {ordinal(now.before + 1)} time" if now.before else text


def named(function: str, place: str) -> str:
    """Return a function and where it was called, with nothing in it that moves a cursor."""
    return f"`{printable(function, '')}`" + (f" ({printable(place, '')})" if place else "")


def ordinal(number: int) -> str:
    """Return a number's ordinal: 1st, 2nd, 3rd, 4th, 11th."""
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
