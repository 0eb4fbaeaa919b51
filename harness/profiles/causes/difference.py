"""One thing that is not as it was."""

from __future__ import annotations

from typing import NamedTuple

from harness.profiles.causes.kinds import Kind


class Difference(NamedTuple):
    """One thing that is not as it was."""

    kind: Kind
    argument: str
    before: str
    after: str
    sets_off: str
    """The first stages it can set off: letters of T(race), L(ower), C(ompile)."""
    type: str = ""
    """Of a static argument."""
    file: str = ""
    """Of a static argument that is a function, of the same line as before: where it is defined."""
    line: int = 0
