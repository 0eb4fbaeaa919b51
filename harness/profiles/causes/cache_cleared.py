"""One of JAX's caches was emptied."""

from __future__ import annotations

from collections.abc import Sequence

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.causes.words import place_text
from harness.profiles.model import Built
from harness.watch.events import Cleared

CAUSE = Kind(name="cache cleared", several="JAX's caches were cleared in between")


def of(built: Built, cleared: Sequence[Cleared]) -> Cause | None:
    """Return the cause where one of `cleared`, since JAX had it, emptied this function's cache."""
    own = (0, built.line.function)
    lines = [line for line in cleared if line.what != "clear_cache" or line.function in own]
    if not lines:
        return None
    name, line = built.function.name, lines[-1]
    stack = built.process.stacks.get(line.stack)
    at = f" at {place_text(stack.frames[-1])}" if stack and stack.frames else ""
    what = {"clear_cache": f"{name}.clear_cache()", "backends": "the backends"}.get(
        line.what, f"{line.what}()"
    )
    text = f"`{name}` had been built for these arguments; `{what}`{at} threw it away."
    if line.what == "backends":
        text = f"`{name}` had been built, but the backends were cleared{at}."
    remedy = "Clear caches only where memory needs it, not between calls that repeat."
    return Cause(CAUSE.name, what, sentence=text, remedy=remedy)
