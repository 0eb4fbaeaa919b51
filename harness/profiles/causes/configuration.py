"""JAX's configuration or context is another."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import setting_change

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
    one, other = (built.settings.context if built.settings else {} for built in pair)
    if shown == name or one.get(shown) == other.get(shown):  # a mesh is told of in two ways
        yield setting_change(shown, *values)


CAUSE = ChangeKind(
    name="configuration",
    several="{what} of JAX's configuration or context had {n} values",
    apart=True,
    looks={"context": _context},
    sentence="`{argument}` of JAX's configuration or context was {before}, now {after}.",
    remedy="Set `{argument}` once, before the first call, or always call under the same context.",
)
