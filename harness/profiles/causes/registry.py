"""All causes. A new one is a file in this folder that has a `CAUSE`, and its line here."""

from __future__ import annotations

from importlib import import_module

from harness.profiles.causes.cause import PLACES, ChangeKind, Kind, Look, LossKind, Place

NAMES = (
    "first",
    "raised",
    "failed_before",
    "new_function_object",
    "pytree",
    "dtype",
    "shape",
    "sharding",
    "weak_type",
    "static_value",
    "committed",
    "device",
    "layout",
    "configuration",
    "donation",
    "ahead_of_time",
    "jit_options",
    "cache_cleared",
    "concurrent",
    "evicted",
    "unexplained",
)
"""Modules, in the order in which they are asked: of a static value, a setting or an option the
first one that answers tells."""


def _kind(module: str) -> Kind:
    kind = getattr(import_module(f"{__package__}.{module}"), "CAUSE", None)
    if not isinstance(kind, Kind):
        raise TypeError(f"{__package__}.{module} lacks `CAUSE`, a Kind, ChangeKind or LossKind.")
    return kind


KINDS: dict[str, Kind] = {kind.name: kind for kind in map(_kind, NAMES)}

LOSSES = tuple(kind for kind in KINDS.values() if isinstance(kind, LossKind))

LOOKS: dict[Place, tuple[tuple[ChangeKind, Look], ...]] = {
    place: tuple(
        (kind, kind.looks[place])
        for kind in KINDS.values()
        if isinstance(kind, ChangeKind) and place in kind.looks
    )
    for place in PLACES
}
"""Who looks at a place, in the order in which they are asked."""

BLAMELESS = tuple(kind.name for kind in KINDS.values() if kind.blameless)
"""Causes of builds that nothing can be said against."""
