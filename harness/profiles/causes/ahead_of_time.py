"""Built ahead of time with other options."""

from __future__ import annotations

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import setting_change


def _options(pair: Pair, option: tuple[str, str | None, str | None]) -> list[Change] | None:
    compiled = pair.new.line.kind == "compile" and option[0] == "compiler_options"
    return [setting_change(*option)] if option[0] == "lowering_platforms" or compiled else None


CAUSE = ChangeKind(
    name="ahead of time",
    blameless=True,
    looks={"options": _options},
    sets_off="LC",
    sentence="`{name}` was built ahead of time with `{argument}` {after}, before {before}.",
    remedy="Build `{name}` with one set of `{argument}`, and keep what `.compile()` returned.",
)
