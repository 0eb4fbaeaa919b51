"""The structure of the arguments, or how one is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from harness.jaxhooks.events import Arguments, Dynamic, FixedField, Static, Tree
from harness.profiles.causes.cause import (
    Cause,
    Change,
    Difference,
    Pair,
    Remedy,
    Way,
    several,
)
from harness.profiles.causes.values import (
    LONGEST,
    another_object,
    around,
    is_array,
    place_text,
    static_text,
)
from harness.profiles.model import Built
from harness.profiles.names import FILTER_JIT, package_of, shortened, wrappers

Form = Literal[
    "",
    "other",
    "object",
    "class",
    "class recreated",
    "inside",
    "inside recreated",
    "dictionary",
    "fields",
    "fields and more",
    "numbers",
    "static",
    "way",
    "static way",
    "use",
]
"""How a structure differs.

- "": in keys, containers, None. `other`: in its arrays as well. `dictionary`: in its kind alone.
- `object`: it holds another object of the same text.
- `class`, `inside`: an argument, or what it holds, has another class; `recreated`: of that name.
- `fields`: in fixed fields of a class; `numbers`: in nothing but their numbers; `more`: also in
  something else.
- `static`: a static argument is left out of some calls. `way`, `static way`: given by position or
  keyword.
- `use`: the program uses a library's function for something else there.
"""

_WAYS: tuple[Way, Way] = ("position", "keyword")

_DICTIONARIES = ("dict", "collections.OrderedDict", "collections.defaultdict")
_PLAIN = ("tuple", "list", "dict", "None")

_NUMBER = re.compile(r"-?\b\d[\d.]*(?:e[-+]?\d+)?")

_Both = tuple[Tree | None, Tree | None]


def trees(pair: Pair, both: tuple[Arguments, Arguments]) -> Iterator[Cause]:
    """Look at the structures of the dynamic arguments."""
    one, other = ({argument.name: argument for argument in side.trees} for side in both)
    names = dict.fromkeys((*other, *one))
    for name in names:
        yield from _of_argument(name, one.get(name), other.get(name))


def _of_argument(name: str, old: Dynamic | None, new: Dynamic | None) -> Iterator[Cause]:
    if old is None or new is None:
        (before, was), (after, now) = _given(old), _given(new)
        yield Change(name, before, after, ways=(was, now))
        return
    if old.keyword != new.keyword:
        yield Change(name, form="way", ways=(_WAYS[old.keyword], _WAYS[new.keyword]))
    if old.tree != new.tree:
        yield _of_trees(name, old.tree, new.tree)


def _given(argument: Dynamic | None) -> tuple[str, Way]:
    if argument is None:
        return "", "absent"
    return _shown(argument.tree, "given")


def _shown(tree: Tree | None, array: Way = "array") -> tuple[str, Way]:
    return ("", array) if tree is None else (shortened(tree_text(tree), LONGEST), "")


def tree_text(tree: Tree | None) -> str:
    """Return a structure as Python would write it: `{'w': *, 'b': *}`, `State(opt=*, rate=0.1)`."""
    if tree is None:
        return "*"
    children = [tree_text(child) for child in tree.children]
    match tree.type:
        case "None":
            return "None"
        case "tuple":
            return f"({', '.join(children)}{',' * (len(children) == 1)})"
        case "list":
            return f"[{', '.join(children)}]"
    if tree.type in _DICTIONARIES:
        pairs = ", ".join(f"{k}: {v}" for k, v in zip(tree.names, children, strict=True))
        return f"{{{pairs}}}" if tree.type == "dict" else f"{_short(tree.type)}({{{pairs}}})"
    if len(tree.names) == len(children):
        children = [f"{name}={one}" for name, one in zip(tree.names, children, strict=True)]
    return f"{_short(tree.type)}({', '.join([*children, *map(_field_text, tree.fields)])})"


def _field_text(field: FixedField) -> str:
    return f"{field.name}={field.value}" if field.name else field.value


def _of_trees(name: str, old: Tree | None, new: Tree | None) -> Cause:
    """Return the change of two structures: of classes before fields, and of these before others."""
    pairs = list(_in_step(old, new))
    last = pairs[-1]
    apart = not _alike(*last)
    change = _of_classes(name, last, inside=len(pairs) > 1) if apart else None
    if change is not None:
        return change
    for one, other in pairs[:-1] if apart else pairs:
        if one and other and one.fields != other.fields:
            change = _of_fields(name, one, other, apart)
            if change is not None:
                return change
    if not apart:
        held = next(filter(None, (_held(*pair) for pair in pairs)), "")
        return Change(name, held, held, "object", ("object", "object"))
    form: Form = "" if _same_arrays(old, new) else "other"
    if old is None or new is None:
        (before, was), (after, now) = _shown(old), _shown(new)
        return Change(name, before, after, form, (was, now))
    return Change(name, *around(tree_text(old), tree_text(new)), form)


def _in_step(old: Tree | None, new: Tree | None) -> Iterator[_Both]:
    """Yield the nodes of two structures in step, the last of them where they are not alike."""
    yield old, new
    if not old or not new or not _alike(old, new):
        return
    for pair in zip(old.children, new.children, strict=True):
        last = pair
        for last in _in_step(*pair):
            yield last
        if not _alike(*last):
            return


def _alike(old: Tree | None, new: Tree | None) -> bool:
    """Return whether two nodes are of one type with the same children, fixed fields aside."""
    if old is None or new is None:
        return old is new
    same = (old.type, old.number, old.names) == (new.type, new.number, new.names)
    return same and len(old.children) == len(new.children)


def _of_classes(name: str, pair: _Both, inside: bool) -> Cause | None:
    """Return the change where an argument, or what it holds, has another class."""
    old, new = pair
    if old is None or new is None or (old.type, old.number) == (new.type, new.number):
        return None
    kinds = old.type, new.type
    one, other = map(_short, kinds)
    if set(kinds) <= set(_DICTIONARIES):
        same = sorted(old.names) == sorted(new.names)  # an OrderedDict has an order of its own
        return Change(name, one, other, "dictionary") if same else None
    if set(kinds) & set(_PLAIN):
        return None
    form = f"{'inside' if inside else 'class'}{' recreated' if kinds[0] == kinds[1] else ''}"
    return Change(name, one, other, form, type=other)


def _short(kind: str) -> str:
    return ".".join(kind.replace("<locals>.", "").split(".")[-2:])


def _of_fields(name: str, old: Tree, new: Tree, more: bool) -> Cause | None:
    """Return the change of a class's fixed fields; None where they differ as objects alone."""
    same = [one.name for one in old.fields] == [one.name for one in new.fields]
    changed = [pair for pair in zip(old.fields, new.fields, strict=False) if pair[0] != pair[1]]
    values = [(a, b) for a, b in changed if not another_object(a.value, b.value)]
    if same and not values:
        return None
    more = more or len(values) < len(changed)
    if not same:
        values = [(FixedField("", _fields_text(old)), FixedField("", _fields_text(new)))]
    before, after = (", ".join(map(_field_text, side)) for side in zip(*values, strict=True))
    form: Form = "fields and more" if more else "fields"
    if not more and new.type == "collections.defaultdict":
        form = "dictionary"
    elif same and not more and all(_are_numbers(a.value, b.value) for a, b in values):
        form = "numbers"
    field = values[0][1].name if len(values) == 1 else ""
    kind = _short(new.type).rpartition(".")[2]
    return Change(name, *around(before, after), form, type=kind, field=field, differing=len(values))


def _fields_text(tree: Tree) -> str:
    return f"({', '.join(map(_field_text, tree.fields))})"


def _are_numbers(before: str, after: str) -> bool:
    return _NUMBER.sub("", before) == _NUMBER.sub("", after)


def _held(old: Tree | None, new: Tree | None) -> str:
    """Return the name of the first object in a node of which only the identity differs."""
    if old is None or new is None:
        return ""
    values = ((a.value, b.value) for a, b in zip(old.fields, new.fields, strict=False))
    return next((name for both in values if (name := another_object(*both))), "")


def _same_arrays(old: Tree | None, new: Tree | None) -> bool:
    """Return whether two structures have as many arrays, None counted, or some keys less."""
    one, other = set(_keys(old)), set(_keys(new))
    if one < other or other < one:
        return True
    return one == other and _arrays(old) == _arrays(new)


def _keys(tree: Tree | None) -> Iterator[str]:
    if tree is not None:
        yield from tree.names if tree.type in _DICTIONARIES else ()
        for child in tree.children:
            yield from _keys(child)


def _arrays(tree: Tree | None) -> int:
    if tree is None or tree.type == "None":
        return 1
    return sum(map(_arrays, tree.children))


def given_otherwise(pair: Pair, statics: tuple[Static | None, Static | None]) -> Iterator[Cause]:
    """Look at a static argument that is given in another way, or not at all."""
    before, after = statics
    if before is not None and after is not None:
        if before.keyword != after.keyword:
            ways = (_WAYS[before.keyword], _WAYS[after.keyword])
            yield Change(after.name, form="static way", ways=ways)
    elif after is not None and not is_array(after.name, pair.old.arguments):
        yield Change(after.name, "", static_text(after)[0], "static", ("absent", ""))
    elif before is not None and not is_array(before.name, pair.new.arguments):
        yield Change(before.name, static_text(before)[0], "", "static", ("", "absent"))


def remedy(pair: Pair, what: Cause, item: object) -> Remedy | None:
    """Return what to do about a structure; None where JAX builds a program for each in any case."""
    name = what.argument
    match what.form:
        case "static":
            return Remedy("by keyword", name)
        case "way" | "static way":
            if _is_static(pair.new, name):
                return Remedy("by keyword", name)
            return Remedy("one way", name, what.ways[0])
        case "dictionary":
            return Remedy("one kind of dictionary", name)
        case "object":
            return Remedy("pass what it holds" if pair.is_changed else "held object once", name)
        case "class recreated" | "inside recreated":
            return Remedy("class once", name, what.after)
        case "numbers":
            return Remedy("field as data", name, what.field, type=what.type)
        case "class" | "inside" | "other" | "fields" | "fields and more":
            return None  # a function, say: no array can stand for it, or for all that differs
    return Remedy("same structure", name)


def _is_static(built: Built, name: str) -> bool:
    statics = built.arguments.statics if built.arguments is not None else ()
    return FILTER_JIT not in wrappers(built.function) and name in {one.name for one in statics}


def another_use(pair: Pair, differences: list[Difference]) -> Cause | None:
    """Return that a library's function was called elsewhere with another kind of problem."""
    old, built = pair
    apart = built.call_site != old.call_site and built.call_site.origin == "program"
    changes = [one.change for one in differences if one.kind.name == "pytree"]
    other = any(change.form != "object" for change in changes)
    if built.function.origin != "library" or not apart or not other or len(differences) < 2:
        return None
    names = [changes[0].argument, *(one.change.argument for one in differences)]
    change = changes[0]._replace(
        form="use", place=place_text(old.call_site), library=package_of(built.function.file)
    )
    alike = several(list(dict.fromkeys(names)))
    return change._replace(kind="pytree", alike=alike, nearest=old.line.id)
