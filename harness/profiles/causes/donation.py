"""Other arguments are donated."""

from __future__ import annotations

from collections.abc import Iterable

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.jit_options import remedy
from harness.profiles.model import Built

_NAMES = ("donated", "donate_argnames", "donate_argnums")
"""Of one thing; the first that differs is told."""


def _options(pair: Pair, option: tuple[str, str | None, str | None]) -> Iterable[Change] | None:
    name, *values = option
    if name not in _NAMES:
        return None
    old, new = (built.settings.jit if built.settings else {} for built in pair)
    if name != next(known for known in _NAMES if old.get(known) != new.get(known)):
        return ()
    before, after = (value or "nothing" for value in values)
    return [Change(after if after != "nothing" else before, before, after)]


def _sentence(built: Built, what: Change) -> str:
    return f"`{built.function.name}` was jitted to donate {what.before}, now {what.after}."


CAUSE = ChangeKind(
    name="donation", looks={"options": _options}, sets_off="L", sentence=_sentence, remedy=remedy
)
