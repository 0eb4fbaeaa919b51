"""One thing to know about a program, and the words that all such things share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.profiles.answer.grouping import site_text
from harness.profiles.model import Built


@dataclass(frozen=True)
class Finding:
    """One thing to know about a program, in words."""

    seconds: float
    """What its builds took, on whatever thread."""
    text: str
    remedy: str = ""
    place: str = ""
    """The line that did it."""


def seconds_of(builds: Sequence[Built]) -> float:
    """Return what builds took."""
    return sum(built.build_ns for built in builds) / 1e9


def verb_of(builds: Sequence[Built]) -> str:
    """Return what was done in all of these builds, the latest stage that any of them reached."""
    for verb, reached in (
        ("compiled", any(built.times("compile") > built.hits for built in builds)),
        ("loaded", any(built.hits for built in builds)),
        ("lowered", any(built.times("lower") for built in builds)),
    ):
        if reached:
            return verb
    return "traced"


def places(builds: Sequence[Built]) -> str:
    """Return the line that most of these builds were asked for from, and how many more there are.

    Of a library, where the program's own code is not on the stack.
    """
    sites = Counter(filter(None, map(site_text, builds)))
    if not sites:
        return ""
    first = sites.most_common(1)[0][0]
    return first if len(sites) == 1 else f"{first} and {len(sites) - 1} more"


def times_text(count: int) -> str:
    """Return how often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"
