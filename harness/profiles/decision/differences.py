"""What differs between two builds of a function, and which stage each difference sets off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.profiles.causes.cause import UNTRACED, Cause, Difference, Pair, Place, worded
from harness.profiles.causes.registry import LOOKS
from harness.profiles.causes.words import (
    ANOTHER_OBJECT,
    MENTIONED,
    alone,
    eager_remedy,
    jax_function,
    names_text,
)
from harness.profiles.decision.history import IGNORED, STATIC, static_key
from harness.profiles.model import Built
from harness.watch import events

_ALONE = ("statics", "context", "options")
"""Places of which one cause tells."""


def differences(old: Built, new: Built) -> list[Difference]:
    """Return all differences; of those that suffice alone, the one to name comes first."""
    found = sorted(_all(Pair(old, new)), key=lambda one: not one.kind.foremost)
    placed: set[str] = set()
    kept = []
    for difference in found:
        if difference.kind.placed:  # a mesh is part of the type, and told of there
            if difference.change.argument in placed:
                continue
            placed.add(difference.change.argument)
        kept.append(difference)
    return kept


def _all(pair: Pair) -> Iterator[Difference]:
    old, new = pair
    if not new.operation and old.line.object != new.line.object:
        yield from _seen(pair, "function", None)
    jit: tuple[dict[str, str], ...] = ({}, {})
    context: tuple[dict[str, str], ...] = ({}, {})
    if old.settings is not None and new.settings is not None:
        jit = old.settings.jit, new.settings.jit
        context = old.settings.context, new.settings.context
    if any(jit[0].get(option) != jit[1].get(option) for option in STATIC):
        yield from _seen(pair, "chosen", jit)
    if old.arguments is not None and new.arguments is not None:
        yield from _arguments(pair, old.arguments, new.arguments)
    for name, *values in _changed(*context):
        if name not in IGNORED:
            yield from _seen(pair, "context", (name, *values))
    for name, *values in _changed(*jit):
        if name not in STATIC:
            yield from _seen(pair, "options", (name, *values))


def _seen(pair: Pair, place: Place, item: Any) -> Iterator[Difference]:
    """Yield what the causes that look at a place see there."""
    for kind, look in LOOKS[place]:
        changes = look(pair, item)
        if changes is None:
            continue
        sets_off = kind.sets_off if place in UNTRACED else "T"
        for change in changes:
            yield Difference(kind, change, sets_off)
        if place in _ALONE:
            return


def _arguments(pair: Pair, old: events.Arguments, new: events.Arguments) -> Iterator[Difference]:
    if old.tree != new.tree:
        yield from _seen(pair, "tree", (old.tree, new.tree))
    if old.statics != new.statics:
        earlier = {static.name: static for static in old.statics}
        for static in new.statics:
            before = earlier.pop(static.name, None)
            if before is None or static_key(before) != static_key(static):
                yield from _seen(pair, "given", (before, static))
                if before is not None and static_key(before)[2:] != static_key(static)[2:]:
                    yield from _seen(pair, "statics", (before, static))
        for static in earlier.values():
            yield from _seen(pair, "given", (static, None))
    pairs = _changed_leaves(old.leaves, new.leaves)
    places: tuple[Place, ...] = ("types", "placement")
    for place in places:
        for leaves in pairs:
            idle = place == "types" and leaves[0].unused and leaves[1].unused
            yield from _seen(pair, "unused" if idle else place, leaves)


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


def able(found: list[Difference], stage: str) -> list[Difference]:
    """Return the differences, those that can set off a stage first; none where none can."""
    first = [difference for difference in found if stage in difference.sets_off]
    if not first or len(first) == len(found):
        return first
    return first + [difference for difference in found if stage not in difference.sets_off]


def weight(found: list[Difference]) -> int:
    """Return how far two builds lie apart."""
    return sum(difference.kind.weight for difference in found)


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


def cause(old: Built, built: Built, found: list[Difference]) -> Cause:
    """Return the cause of a build that differs from the nearest one, the first of `found`."""
    for difference in found:
        if difference.kind.instead is not None:
            told = difference.kind.instead(Pair(old, built), found)
            if told is not None:
                return told
    (kind, change, _), *others = found
    text = _sentence(built, found[0])
    alike = [one.change for one in others if one.kind is kind]
    if alike and all(one[1:3] == change[1:3] for one in alike):
        text += f" The same for {names_text([one.argument for one in alike])}."
        others = [one for one in others if one.kind is not kind]
    if others:
        text += f" Also: {'; '.join(map(_short, others[:MENTIONED]))}"
        rest = len(others) - MENTIONED
        text += f"; and {rest} more." if rest > 0 else "."
    if built.eager:
        remedy = eager_remedy(built)
    else:
        inside = f"{change.argument}.", f"{change.argument}["
        apart = [one for one in others if not f"{one.change.argument}.".startswith(inside)]
        sizes = {one.kind.name for one in others if one not in apart} & {"shape"}
        left = [one for one in apart if set(one.sets_off) & set(found[0].sets_off)]
        remedies = [worded(one.kind.remedy, built, one.change) for one in (found[0], *left)]
        mended = all(remedies) and not (sizes and change.type)  # a field that sizes arrays stays
        remedy = remedies[0] + _mended_too(left) if mended else ""
    return Cause(kind.name, *change[:3], text, remedy, old.line.id, change.defined)


def _mended_too(left: Sequence[Difference]) -> str:
    """Return what a remedy leaves: what would have set off the same stage by itself."""
    if not left:
        return ""
    kind, what, _ = left[0]
    if len(left) == 1:
        return f" `{what.argument}` differs too ({kind.name}): mend both."
    return f" `{what.argument}` ({kind.name}) and {len(left) - 1} more differ too: mend all."


def _sentence(built: Built, difference: Difference) -> str:
    kind, what, _ = difference
    if not built.eager:
        return worded(kind.sentence, built, what)
    known = jax_function(built) + alone(built)
    if kind.of_jax is not None:
        return kind.of_jax(built, known)
    comma = "," if alone(built) else ""
    if kind.each:
        return (
            f"{known}{comma} is built for each {kind.name}: `{what.argument}` was {what.before}, "
            f"now {what.after}."
        )
    general = worded(kind.sentence, built, what)
    general = general.replace("The ", "the ", 1) if general.startswith("The ") else general
    return f"{known}{comma} was built again: {general}"


def _short(difference: Difference) -> str:
    kind, what, _ = difference
    if what.after == ANOTHER_OBJECT:
        return f"{kind.name} of `{what.argument}`: another object, `{what.before}`"
    return f"{kind.name} of `{what.argument}`: {what.before} → {what.after}"
