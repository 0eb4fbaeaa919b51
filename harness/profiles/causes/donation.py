"""Other arguments are donated."""

from __future__ import annotations

from collections.abc import Iterable

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import options_remedy

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


CAUSE = ChangeKind(
    name="donation",
    looks={"options": _options},
    sentence="`{name}` was jitted to donate {before}, now {after}.",
    remedy=options_remedy,
)
