"""All causes. A new one is a file in this folder that has a `CAUSE`, and its entry here."""

from __future__ import annotations

from harness.profiles.causes import (
    ahead_of_time,
    another_program,
    cache_cleared,
    committed,
    concurrent,
    configuration,
    device,
    donation,
    dtype,
    evicted,
    failed_before,
    first,
    jit_options,
    layout,
    new_function_object,
    pytree,
    raised,
    shape,
    sharding,
    static_value,
    unexplained,
    unused,
    weak_type,
)
from harness.profiles.causes.cause import PLACES, ChangeKind, Kind, Look, Place

KINDS: dict[str, Kind] = {
    module.CAUSE.name: module.CAUSE
    for module in (
        first,
        raised,
        failed_before,
        another_program,
        new_function_object,
        pytree,
        dtype,
        shape,
        sharding,
        weak_type,
        unused,
        static_value,
        committed,
        device,
        layout,
        configuration,
        donation,
        ahead_of_time,
        jit_options,
        cache_cleared,
        concurrent,
        evicted,
        unexplained,
    )
}
"""By name, in the order in which they are asked: of a static value, a setting or an option the
first one that answers tells."""

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
