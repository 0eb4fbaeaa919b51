"""One of JAX's caches was emptied."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, LossKind, Lost
from harness.profiles.causes.words import place_text


def _cleared(lost: Lost) -> Cause | None:
    name, own = lost.built.function.name, (0, lost.built.line.function)
    lines = [line for line in lost.cleared if line.what != "clear_cache" or line.function in own]
    if not lines:
        return None
    line = lines[-1]
    stack = lost.built.process.stacks.get(line.stack)
    at = f" at {place_text(stack.frames[-1])}" if stack and stack.frames else ""
    what = {"clear_cache": f"{name}.clear_cache()", "backends": "the backends"}.get(
        line.what, f"{line.what}()"
    )
    text = f"`{name}` had been built for these arguments; `{what}`{at} threw it away."
    if line.what == "backends":
        text = f"`{name}` had been built, but the backends were cleared{at}."
    return Cause(
        "cache cleared",
        argument=what,
        sentence=text,
        remedy="Clear caches only where memory needs it, not between calls that repeat.",
        nearest=lost.had[-1].line.id,
    )


CAUSE = LossKind(
    name="cache cleared", several="JAX's caches were cleared in between", explains=_cleared
)
