"""`jax.jit` was given other options."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import NOT_GIVEN, options_remedy, setting_change
from harness.profiles.model import Built


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


CAUSE = ChangeKind(
    name="jit options",
    looks={"chosen": _chosen, "options": lambda pair, option: [setting_change(*option)]},
    sets_off="LC",
    sentence=_sentence,
    remedy=options_remedy,
)
