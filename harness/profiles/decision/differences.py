"""What differs between two builds of a function, and which stage each difference sets off."""

from __future__ import annotations

from typing import Any

from harness.profiles.causes.cause import (
    UNTRACED,
    Cause,
    Difference,
    Pair,
    Place,
    Remedy,
    caused,
    several,
)
from harness.profiles.causes.kinds import LOOKS
from harness.profiles.causes.outside import eager_remedy
from harness.profiles.decision.history import IGNORED, STATIC, placement_key, static_key
from harness.profiles.model import Built
from harness.watch import events

_ALONE = ("statics", "context", "options")
"""Places of which one cause tells."""


def differences(old: Built, new: Built) -> list[Difference]:
    """Return all differences; of those that suffice alone, the one to name comes first."""
    ordered = sorted(_all(Pair(old, new)), key=lambda one: not one.kind.foremost)
    placed: set[str] = set()
    kept = []
    for difference in ordered:
        if difference.kind.placed:  # a mesh is part of the type, and told of there
            if difference.change.argument in placed:
                continue
            placed.add(difference.change.argument)
        kept.append(difference)
    return kept


def _all(pair: Pair) -> list[Difference]:
    old, new = pair
    differs: list[Difference] = []
    if not new.operation and old.line.object != new.line.object:
        differs += _seen(pair, "function", None)
    jit: tuple[dict[str, str], ...] = ({}, {})
    context: tuple[dict[str, str], ...] = ({}, {})
    if old.settings is not new.settings and old.settings is not None and new.settings is not None:
        jit = old.settings.jit, new.settings.jit
        context = old.settings.context, new.settings.context
    if any(jit[0].get(option) != jit[1].get(option) for option in STATIC):
        differs += _seen(pair, "chosen", jit)
    if old.arguments is not None and new.arguments is not None:
        differs += _arguments(pair, old.arguments, new.arguments)
    for name, *values in _changed(*context):
        if name not in IGNORED:
            differs += _seen(pair, "context", (name, *values))
    for name, *values in _changed(*jit):
        if name not in STATIC:
            differs += _seen(pair, "options", (name, *values))
    return differs


def _seen(pair: Pair, place: Place, item: Any) -> list[Difference]:
    """Return what the causes that look at a place see there."""
    differs: list[Difference] = []
    for kind, look in LOOKS[place]:
        changes = look(pair, item)
        if changes is None:
            continue
        sets_off = kind.sets_off if place in UNTRACED else "T"
        for change in changes:
            differs.append(Difference(kind, change, sets_off, item))
        if place in _ALONE:
            break
    return differs


def _arguments(pair: Pair, old: events.Arguments, new: events.Arguments) -> list[Difference]:
    differs: list[Difference] = []
    if old.trees != new.trees:
        differs += _seen(pair, "tree", (old, new))
    if old.statics != new.statics:
        earlier = {static.name: static for static in old.statics}
        for static in new.statics:
            before = earlier.pop(static.name, None)
            if before is None or static_key(before) != static_key(static):
                differs += _seen(pair, "given", (before, static))
                if before is not None and static_key(before)[2:] != static_key(static)[2:]:
                    differs += _seen(pair, "statics", (before, static))
        for static in earlier.values():
            differs += _seen(pair, "given", (static, None))
    pairs = _changed_leaves(old.leaves, new.leaves)
    # What only the unused differ in is another program where their types are used.
    unused = all(one.unused and other.unused for one, other in pairs)
    typed = unused and (old.trees, old.statics) == (new.trees, new.statics) and pair.is_changed
    for leaves in pairs:
        one, other = leaves
        if one.aval != other.aval or one.weak != other.weak:
            idle = one.unused and other.unused and one.aval != other.aval
            differs += _seen(pair, "unused" if idle and not typed else "types", leaves)
    for leaves in pairs:
        if placement_key(leaves[0]) != placement_key(leaves[1]):
            differs += _seen(pair, "placement", leaves)
    return differs


def _changed_leaves(
    old: tuple[events.Leaf, ...], new: tuple[events.Leaf, ...]
) -> list[tuple[events.Leaf, events.Leaf]]:
    """Return the arrays of the same name that differ in anything."""
    pairs = list(zip(old, new, strict=False))
    if len(old) != len(new) or any(one.path != other.path for one, other in pairs):
        earlier = {leaf.path: leaf for leaf in old}
        pairs = [(earlier[leaf.path], leaf) for leaf in new if leaf.path in earlier]
    return [(one, other) for one, other in pairs if one != other]


def _changed(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str | None, str | None]]:
    if old == new:
        return []
    both = ((name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return [(name, before, after) for name, before, after in both if before != after]


def able(differs: list[Difference], stage: str) -> list[Difference]:
    """Return the differences, those that can set off a stage first; none where none can."""
    first = [difference for difference in differs if stage in difference.sets_off]
    if not first or len(first) == len(differs):
        return first
    return first + [difference for difference in differs if stage not in difference.sets_off]


def weight(differs: list[Difference]) -> int:
    """Return how far two builds lie apart."""
    return sum(one.kind.weight + one.change.differing - 1 for one in differs)


def least_weight(old: Built, new: Built) -> int:
    """Return what :func:`weight` of two builds is at least, without comparing all of them."""
    if old.arguments is None or new.arguments is None:
        return 0
    count = 0
    for leaf, other in zip(old.arguments.leaves, new.arguments.leaves, strict=False):
        if leaf.aval != other.aval and leaf.path == other.path:
            count += 1
    for one, static in zip(old.arguments.statics, new.arguments.statics, strict=False):
        if one != static and static_key(one)[2:] != static_key(static)[2:]:
            count += one.name == static.name
    return 2 * count


def cause(old: Built, built: Built, differs: list[Difference]) -> Cause:
    """Return the cause of a build that differs from the nearest one, the first of `differs`."""
    pair = Pair(old, built)
    for difference in differs:
        if difference.kind.instead is not None:
            other = difference.kind.instead(pair, differs)
            if other is not None:
                return other
    foremost, *others = differs
    alike = [one.change for one in others if one.kind is foremost.kind]
    same = [*foremost.change[1:3], foremost.change.ways]
    if any([*one[1:3], one.ways] != same for one in alike):
        alike = []
    elif alike:
        others = [one for one in others if one.kind is not foremost.kind]
    names = several([one.argument for one in alike])
    remedy = eager_remedy(built) if built.eager else _remedy(pair, foremost, others)
    return caused(
        foremost.kind.name,
        foremost.change,
        remedy=remedy._replace(alike=names) if remedy and not built.eager else remedy,
        nearest=old.line.id,
        alike=names,
        also=several([(one.kind.name, one.change) for one in others]),
    )


def _remedy(pair: Pair, foremost: Difference, others: list[Difference]) -> Remedy | None:
    """Return the remedy of the foremost difference, with what differs too and needs another."""
    change = foremost.change
    inside = f"{change.argument}.", f"{change.argument}["
    apart = [one for one in others if not f"{one.change.argument}.".startswith(inside)]
    if change.type and any(one.kind.name == "shape" for one in others if one not in apart):
        return None  # a field that sizes arrays stays
    left = [one for one in apart if set(one.sets_off) & set(foremost.sets_off)]
    remedies = [one.kind.remedy_of(pair, one) for one in (foremost, *left)]
    if not all(remedies) or remedies[0] is None:
        return None
    return remedies[0]._replace(
        left=several([(one.kind.name, one.change.argument) for one in left])
    )
