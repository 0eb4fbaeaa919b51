"""JAX's configuration or context is another."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.values import setting_text
from harness.profiles.model import Built

CONTEXTS = {
    "abstract_mesh_context_manager": "mesh",
    "mesh_context_manager": "mesh",
    "compute_on_context_manager": "compute_on",
    "xla_metadata_context_manager": "xla_metadata",
    "axis_env_state": "named axes",
}
"""JAX's names of what a user sets with a context manager, in words."""


def _context(pair: Pair, setting: tuple[str, str | None, str | None]) -> Iterator[Change]:
    name, *values = setting
    shown = CONTEXTS.get(name, name)
    contexts = [built.settings.context if built.settings else {} for built in pair]
    if shown != name and contexts[0].get(shown) != contexts[1].get(shown):
        return  # a mesh is told of in two ways
    before, after = map(setting_text, values)
    yield Change(shown, before, after)


def _sentence(built: Built, what: Change) -> str:
    return (
        f"`{what.argument}` of JAX's configuration or context was {what.before}, now {what.after}."
    )


def _remedy(built: Built, what: Change) -> str:
    name = what.argument
    return f"Set `{name}` once, before the first call, or always call under the same context."


CAUSE = ChangeKind(
    name="configuration", looks={"context": _context}, sentence=_sentence, remedy=_remedy
)
