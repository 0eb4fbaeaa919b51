"""All causes: a new one is a row here, and its words in `harness/output/causes.py`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes import arrays, functions, pytree
from harness.profiles.causes.cause import PLACES, Cause, Kind, Look, Pair, Place
from harness.profiles.causes.values import CONTEXTS, of_operations, setting_change


def _context(pair: Pair, setting: tuple[str, str | None, str | None]) -> Iterator[Cause]:
    name, *values = setting
    shown = CONTEXTS.get(name, name)
    one, other = (built.settings.context if built.settings else {} for built in pair)
    if shown == name or one.get(shown) == other.get(shown):  # a mesh is named once of two ways
        yield setting_change(shown, *values)


_ALL = (
    Kind(name="first", blameless=True),
    Kind(name="raised"),
    Kind(name="failed before"),
    Kind(name="another program"),
    Kind(
        name="new function object",
        looks={"function": functions.function_objects, "statics": functions.traced_for},
        remedy=functions.recreated_remedy,
        instead=functions.another_program,
        foremost=True,
    ),
    Kind(
        name="pytree",
        apart=True,
        looks={"tree": pytree.trees, "given": pytree.given_otherwise},
        remedy=pytree.remedy,
        instead=pytree.another_use,
    ),
    Kind(
        name="dtype",
        looks={"types": arrays.dtypes, "statics": of_operations("dtype", "new_dtype")},
        remedy=arrays.dtype_remedy,
    ),
    Kind(
        name="shape",
        looks={"types": arrays.shapes, "statics": arrays.shapes_of_operations},
        remedy="pad",
        tried=arrays.tried_padded,
    ),
    Kind(
        name="sharding",
        looks={
            "types": arrays.meshes,
            "statics": of_operations("sharding", "out_sharding"),
            "placement": arrays.shardings,
        },
        remedy="one sharding",
        placed=True,
    ),
    Kind(
        name="weak type",
        looks={"types": arrays.weak_types, "statics": of_operations("weak_type")},
        remedy=arrays.weak_remedy,
        tried=arrays.tried_strong,
        apart=True,
        weight=1,  # the same array is near
    ),
    Kind(name="unused argument", looks={"unused": arrays.unused}, remedy="leave out", apart=True),
    Kind(
        name="static value",
        apart=True,
        looks={"statics": functions.static_values, "given": functions.static_or_array},
        remedy=functions.static_remedy,
        tried=functions.tried_dynamic,
        instead=functions.another_program,
    ),
    Kind(name="committed", looks={"placement": arrays.commitments}, remedy="commit", placed=True),
    Kind(
        name="device",
        looks={"placement": arrays.devices},
        sets_off="LC",
        remedy="one device",
    ),
    Kind(name="layout", looks={"placement": arrays.layouts}, remedy="one layout"),
    Kind(name="configuration", apart=True, looks={"context": _context}, remedy="one setting"),
    Kind(name="donation", looks={"options": functions.donation}, remedy=functions.options_remedy),
    Kind(
        name="ahead of time",
        blameless=True,
        looks={"options": functions.ahead_of_time},
        sets_off="LC",
        remedy=functions.ahead_of_time_remedy,
    ),
    Kind(
        name="jit options",
        looks={
            "chosen": functions.chosen_statics,
            "options": lambda pair, option: [setting_change(*option)],
        },
        sets_off="LC",
        remedy=functions.options_remedy,
    ),
    Kind(name="cache cleared"),
    Kind(name="concurrent"),
    Kind(name="evicted"),
    Kind(name="unexplained"),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
"""By name, in the order in which they are asked: of a static value, a setting or an option the
first one that answers is named."""

LOOKS: dict[Place, tuple[tuple[Kind, Look], ...]] = {
    place: tuple((kind, kind.looks[place]) for kind in _ALL if place in kind.looks)
    for place in PLACES
}
"""Who looks at a place, in the order in which they are asked."""

BLAMELESS = tuple(kind.name for kind in _ALL if kind.blameless)
"""Causes of builds that any program pays."""
