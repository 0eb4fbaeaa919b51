"""Built ahead of time with other options."""

from __future__ import annotations

from collections.abc import Iterable

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.values import setting_text
from harness.profiles.model import Built


def _options(pair: Pair, option: tuple[str, str | None, str | None]) -> Iterable[Change] | None:
    name, *values = option
    compiled = pair.new.line.kind == "compile" and name == "compiler_options"
    if name != "lowering_platforms" and not compiled:
        return None
    before, after = map(setting_text, values)
    return [Change(name, before, after)]


def _sentence(built: Built, what: Change) -> str:
    return (
        f"`{built.function.name}` was built ahead of time with `{what.argument}` {what.after}, "
        f"before {what.before}."
    )


def _remedy(built: Built, what: Change) -> str:
    return (
        f"Build `{built.function.name}` with one set of `{what.argument}`, and keep what "
        "`.compile()` returned."
    )


CAUSE = ChangeKind(
    name="ahead of time",
    blameless=True,
    looks={"options": _options},
    sets_off="LC",
    sentence=_sentence,
    remedy=_remedy,
)
