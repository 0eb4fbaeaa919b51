"""The causes of a build, and what is said of one."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "first",
    "shape",
    "dtype",
    "weak type",
    "static value",
    "pytree",
    "new function object",
    "committed",
    "device",
    "sharding",
    "layout",
    "configuration",
    "jit options",
    "donation",
    "cache cleared",
    "evicted",
    "ahead of time",
    "failed before",
    "raised",
    "concurrent",
    "unexplained",
]


class Cause(NamedTuple):
    """Why one build was done."""

    kind: Kind
    argument: str = ""
    """Which argument or setting, in the user's words: `x`, `params['w']`, `steps`."""
    before: str = ""
    """Its value in the build that comes nearest."""
    after: str = ""
    sentence: str = ""
    """The cause in a sentence, with the user's own names."""
    remedy: str = ""
    """What to do about it, in a sentence."""
    nearest: int = 0
    """The build that it was compared with; 0 where there is none."""
