"""All causes. A new one stands in a file of this folder, and has its entry here."""

from __future__ import annotations

from harness.profiles.causes import (
    configuration,
    dtype,
    jit_options,
    lost,
    new_function_object,
    placement,
    plain,
    pytree,
    shape,
    static_value,
)
from harness.profiles.causes.cause import PLACES, ChangeKind, Kind, Look, Place

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        plain.FIRST,
        plain.RAISED,
        plain.FAILED_BEFORE,
        new_function_object.CAUSE,
        pytree.CAUSE,
        dtype.DTYPE,
        shape.CAUSE,
        placement.SHARDING,
        dtype.WEAK_TYPE,
        static_value.CAUSE,
        placement.COMMITTED,
        placement.DEVICE,
        placement.LAYOUT,
        configuration.CAUSE,
        jit_options.DONATION,
        jit_options.AHEAD_OF_TIME,
        jit_options.OTHER,
        lost.CLEARED,
        lost.CONCURRENT,
        lost.EVICTED,
        plain.UNEXPLAINED,
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
