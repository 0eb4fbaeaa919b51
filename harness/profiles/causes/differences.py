"""What differs between two builds of a function, and which stage each difference sets off."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.arrays import placement_differences, type_differences
from harness.profiles.causes.aspects import DONATION, IGNORED, STATIC, static_key
from harness.profiles.causes.difference import Difference
from harness.profiles.causes.kinds import Kind
from harness.profiles.causes.texts import place_of, short_functions
from harness.profiles.causes.trees import tree_differences
from harness.profiles.model import Built
from harness.watch import events
from harness.watch.statics import LONGEST

NOT_GIVEN = "not given"
AN_ARRAY = "an array"

_PLACED = ("sharding", "committed", "device")

CONTEXTS = {
    "abstract_mesh_context_manager": "mesh",
    "mesh_context_manager": "mesh",
    "compute_on_context_manager": "compute_on",
    "xla_metadata_context_manager": "xla_metadata",
    "axis_env_state": "named axes",
}
"""JAX's names of what a user sets with a context manager, in words."""

CONTAINERS = ("str", "bytes", "int", "tuple", "frozenset")
"""Types of values that are equal where all of their text is, of which a part may be recorded."""

_BEGIN = 60
"""Characters that are shown of a value whose end is not recorded."""

PARAMETERS: dict[str, Kind] = {
    "shape": "shape",
    "sizes": "shape",
    "new_sizes": "shape",
    "slice_sizes": "shape",
    "start_indices": "shape",
    "limit_indices": "shape",
    "dimensions": "shape",
    "dtype": "dtype",
    "new_dtype": "dtype",
    "weak_type": "weak type",
    "sharding": "sharding",
    "out_sharding": "sharding",
}
"""What parameters of JAX's own operations stand for in the call of the user."""


def differences(old: Built, new: Built, as_objects: bool = True) -> list[Difference]:
    """Return all differences; of those that suffice alone, the one to name comes first.

    Args:
        old: the earlier build.
        new: the later one.
        as_objects: whether function objects are compared.
    """
    found: list[Difference] = []
    if as_objects and old.line.object != new.line.object:
        before, after = (f"object {built.line.object}" for built in (old, new))
        found.append(Difference("new function object", new.function.name, before, after, "T"))
    if old.settings is not None and new.settings is not None:
        found += _chosen(old.settings.jit, new.settings.jit, new.arguments)
    if old.arguments is not None and new.arguments is not None:
        found += _arguments(old.arguments, new.arguments, new.function.origin == "jax")
    if old.settings is not None and new.settings is not None:
        found += _context(old.settings.context, new.settings.context)
        found += _options(old.settings.jit, new.settings.jit, new.line.kind == "compile")
    placed: set[str] = set()
    kept = []
    for difference in sorted(found, key=lambda one: one.kind != "new function object"):
        if difference.kind in _PLACED:  # a mesh is part of the type, and told of there
            if difference.argument in placed:
                continue
            placed.add(difference.argument)
        kept.append(difference)
    return kept


def weight(found: list[Difference]) -> int:
    """Return how far two builds lie apart; the same array with another weak type is near."""
    return sum(1 if difference.kind == "weak type" else 2 for difference in found)


def least_weight(old: Built, new: Built) -> int:
    """Return what :func:`weight` of two builds is at least, without comparing all of them."""
    if old.arguments is None or new.arguments is None:
        return 0
    leaves = zip(old.arguments.leaves, new.arguments.leaves, strict=False)
    statics = zip(old.arguments.statics, new.arguments.statics, strict=False)
    types = sum(one.path == other.path and one.aval != other.aval for one, other in leaves)
    values = sum(
        one.name == other.name and static_key(one)[2:] != static_key(other)[2:]
        for one, other in statics
    )
    return 2 * (types + values)


def _chosen(
    old: dict[str, str], new: dict[str, str], arguments: events.Arguments | None
) -> Iterator[Difference]:
    name = "static_argnames" if any("static_argnames" in jit for jit in (old, new)) else STATIC[0]
    if old != new and any(old.get(option) != new.get(option) for option in STATIC):
        yield Difference("jit options", name, old.get(name, "()"), new.get(name, "()"), "T")


def _arguments(
    old: events.Arguments, new: events.Arguments, parameters: bool
) -> Iterator[Difference]:
    if old.tree != new.tree:
        for argument, before, after in tree_differences(old.tree, new.tree):
            yield Difference("pytree", argument, before, after, "T")
    if old.statics != new.statics:
        yield from _statics(old, new, parameters)
    pairs = _changed_leaves(old.leaves, new.leaves)
    for compare in (type_differences, placement_differences):
        for one, other in pairs:
            yield from compare(one, other)


def _changed_leaves(
    old: tuple[events.Leaf, ...], new: tuple[events.Leaf, ...]
) -> list[tuple[events.Leaf, events.Leaf]]:
    """Return the arrays of the same name that differ in anything."""
    pairs = list(zip(old, new, strict=False))
    if len(old) != len(new) or any(one.path != other.path for one, other in pairs):
        earlier = {leaf.path: leaf for leaf in old}
        pairs = [(earlier[leaf.path], leaf) for leaf in new if leaf.path in earlier]
    return [(one, other) for one, other in pairs if one != other]


def _statics(
    old: events.Arguments, new: events.Arguments, parameters: bool
) -> Iterator[Difference]:
    earlier = {static.name: static for static in old.statics}
    for static in new.statics:
        before = earlier.pop(static.name, None)
        if before is None and _is_array(static.name, old):
            yield Difference("static value", static.name, AN_ARRAY, static_text(static, None), "T")
        elif before is None:
            yield Difference("pytree", static.name, "not given", static_text(static, None), "T")
        elif static_key(before) != static_key(static):
            if before.keyword != static.keyword:
                how = [("by position", "by keyword")[s.keyword] for s in (before, static)]
                yield Difference("pytree", static.name, how[0], how[1], "T")
            if static_key(before)[2:] != static_key(static)[2:]:
                yield _static(before, static, parameters)
    for name, static in earlier.items():
        if _is_array(name, new):
            yield Difference("static value", name, static_text(static, None), AN_ARRAY, "T")
        else:
            yield Difference("pytree", name, static_text(static, None), "not given", "T")


def _is_array(name: str, line: events.Arguments) -> bool:
    return any(leaf.path == name for leaf in line.leaves)


def _static(before: events.Static, after: events.Static, parameters: bool) -> Difference:
    texts = static_text(before, after), static_text(after, before)
    if not parameters:
        file, line = place_of(after.value)
        place = (file, line) if place_of(before.value) == (file, line) else ("", 0)
        return Difference("static value", after.name, *texts, "T", after.type, *place)
    if "Jaxpr" in after.type or "{ lambda" in after.value:  # what JAX traced of a function
        objects = f"object {before.object}", f"object {after.object}"
        return Difference("new function object", after.name, *objects, "T")
    return Difference(PARAMETERS.get(after.name, "static value"), after.name, *texts, "T")


def static_text(static: events.Static, other: events.Static | None) -> str:
    """Return a static value; with its type, or as an object, where the text alone is the same."""
    text = short_functions(static.value)
    if other is None or static.value != other.value:
        return text
    if static.type != other.type:
        return f"{text} ({static.type})"
    if static.type in CONTAINERS or len(static.value) >= LONGEST:
        return f"{text[:_BEGIN]}{'…' * (len(text) > _BEGIN)} (the rest differs)"
    return f"{text} (object {static.object})"


def _context(old: dict[str, str], new: dict[str, str]) -> Iterator[Difference]:
    changed = _changed(old, new)
    for name in changed:
        shown = CONTEXTS.get(name, name)
        if name in IGNORED or (shown != name and shown in changed):  # a mesh is told of in two ways
            continue
        texts = text_of(old.get(name)), text_of(new.get(name))
        yield Difference("configuration", shown, *texts, "T")


def _options(old: dict[str, str], new: dict[str, str], ahead: bool) -> Iterator[Difference]:
    changed = _changed(old, new)
    for name in DONATION:
        if name in changed:
            before, after = (jit.get(name, "nothing") for jit in (old, new))
            argument = after if after != "nothing" else before
            yield Difference("donation", argument, before, after, "L")
            break
    for name in changed:
        if name in STATIC or name in DONATION:
            continue
        texts = text_of(old.get(name)), text_of(new.get(name))
        if name == "lowering_platforms" or (ahead and name == "compiler_options"):
            yield Difference("ahead of time", name, *texts, "LC")
        else:
            yield Difference("jit options", name, *texts, "LC")


def _changed(old: dict[str, str], new: dict[str, str]) -> list[str]:
    if old == new:
        return []
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]


def text_of(value: str | None) -> str:
    """Return a setting's value."""
    return NOT_GIVEN if value is None else value
