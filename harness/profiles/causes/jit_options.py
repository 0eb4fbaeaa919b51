"""What `jax.jit`, `.lower()` or `.compile()` was given besides the arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import NOT_GIVEN, library_remedy, setting_change
from harness.profiles.model import Built
from harness.profiles.names import package_of

_DONATED = ("donated", "donate_argnames", "donate_argnums")
"""Of one thing; the first that differs is told."""

_Option = tuple[str, str | None, str | None]


def _donation(pair: Pair, option: _Option) -> Iterable[Change] | None:
    name, *values = option
    if name not in _DONATED:
        return None
    old, new = (built.settings.jit if built.settings else {} for built in pair)
    if name != next(known for known in _DONATED if old.get(known) != new.get(known)):
        return ()
    before, after = (value or "nothing" for value in values)
    return [Change(after if after != "nothing" else before, before, after)]


def _ahead_of_time(pair: Pair, option: _Option) -> list[Change] | None:
    compiled = pair.new.line.kind == "compile" and option[0] == "compiler_options"
    return [setting_change(*option)] if option[0] == "lowering_platforms" or compiled else None


def _chosen(pair: Pair, chosen: tuple[dict[str, str], dict[str, str]]) -> Iterator[Change]:
    names = any("static_argnames" in jit for jit in chosen)
    name = "static_argnames" if names else "static_argnums"
    before, after = (jit.get(name, "()") for jit in chosen)
    yield Change(name, before, after)


def _sentence(built: Built, what: Change) -> str:
    before, after = (
        f"with {text}" if text != NOT_GIVEN else "without it" for text in (what.before, what.after)
    )
    return (
        f"`{what.argument}` of jax.jit: `{built.function.name}` was jitted {before}, now {after}."
    )


def _remedy(built: Built, what: Change) -> str:
    if built.function.origin == "library":
        return library_remedy(built, package_of(built.function.file))
    return f"Jit `{built.function.name}` once, with one set of options."


DONATION = ChangeKind(
    name="donation",
    looks={"options": _donation},
    sentence="`{name}` was jitted to donate {before}, now {after}.",
    remedy=_remedy,
)
AHEAD_OF_TIME = ChangeKind(
    name="ahead of time",
    blameless=True,
    looks={"options": _ahead_of_time},
    sets_off="LC",
    sentence="`{name}` was built ahead of time with `{argument}` {after}, before {before}.",
    remedy="Build `{name}` with one set of `{argument}`, and keep what `.compile()` returned.",
)
OTHER = ChangeKind(
    name="jit options",
    looks={"chosen": _chosen, "options": lambda pair, option: [setting_change(*option)]},
    sets_off="LC",
    sentence=_sentence,
    remedy=_remedy,
)
