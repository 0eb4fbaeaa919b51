"""The structure of the arguments, or how one is given."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.profiles.causes.cause import Cause, Change, ChangeKind, Difference, Pair
from harness.profiles.causes.words import (
    AN_ARRAY,
    ANOTHER_OBJECT,
    FILTER_JIT,
    LONGEST,
    NOT_GIVEN,
    another_object,
    around,
    in_common,
    is_array,
    names_text,
    place_text,
    static_text,
)
from harness.profiles.model import Built
from harness.profiles.names import package_of, shortened
from harness.watch.events import Static

_WAYS = ("by position", "by keyword")

_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|[][(){},]""", re.DOTALL)
"""Something in quotes, a bracket, or a comma."""


_MORE = "; more of it differs too"

_CLASS, _INSIDE, _OTHER = "class", "class inside", "other"
"""Stand for the type of an object of another class, of what holds one, or has other arrays."""

_STATIC = "static"
"""Stands for the type of a static argument that is left out of some calls."""

_DICTIONARIES = ("dict", "collections.OrderedDict", "collections.defaultdict")

_KEY = re.compile(r"('[^']*'): ")
_NUMBER = re.compile(r"-?\b\d[\d.]*(?:e[-+]?\d+)?")

_OWN_NODE = re.compile(r"CustomNode\((?P<name>[^[(]+)\[")
"""Where a class of the user's or a library's begins in a structure, with its fixed fields."""


def tree_differences(old: str, new: str) -> list[Change]:
    """Return the change of each argument whose structure or way in differs.

    Where the fixed fields of a class differ first, these are the texts, and its type is that class.

    Args:
        old: as it stands in `events.Arguments.tree`: `x, params: {'w': *}, scale=`.
        new: the same of the later build.
    """
    one, other = arguments_of(old), arguments_of(new)
    found = []
    for name in dict.fromkeys((*other, *one)):
        before, after, plain = one.get(name), other.get(name), name.rstrip("=")
        if before == after:
            continue
        if before is not None and after is not None:
            fields = _classes(before, after) or _fixed_fields(before, after)
            texts = fields or (*_both(before, after), "" if _alike(before, after) else _OTHER)
            found.append(Change(plain, *texts))
        elif before is None and _twin(name) in one:
            found.append(Change(plain, *(_WAYS if name.endswith("=") else _WAYS[::-1])))
        elif after is not None or _twin(name) not in other:
            found.append(Change(plain, _given(before), _given(after)))
    # Where nothing is found, it is the order of keywords and the like.
    return found or [Change("arguments", *around(old, new))]


def arguments_of(tree: str) -> dict[str, str]:
    """Return the structure of each argument by its name; a single array is `*`."""
    found: dict[str, str] = {}
    for part in split(tree):
        name, colon, structure = part.partition(": ")
        if structure.startswith("PyTreeDef("):
            structure = structure.removeprefix("PyTreeDef(").removesuffix(")")
        found[name] = structure if colon else "*"
    return found


def split(text: str) -> list[str]:
    """Split at the commas that are in no bracket and no quotes."""
    parts, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text):
        letter = token.group()[0]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start : token.start()].strip())
            start = token.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _twin(name: str) -> str:
    return name.removesuffix("=") if name.endswith("=") else name + "="


def _given(structure: str | None) -> str:
    if structure is None:
        return NOT_GIVEN
    return "given" if structure == "*" else _shortened(structure)


def _both(before: str, after: str) -> tuple[str, str]:
    """Return two structures, shortened to where they differ."""
    if "*" in (before, after):
        return _shortened(before), _shortened(after)
    name = another_object(before, after)
    return (name, ANOTHER_OBJECT) if name else around(before, after)


def _classes(before: str, after: str) -> tuple[str, str, str] | None:
    """Return the classes of two structures, or of what they hold, where these differ first."""
    texts = _nodes(before)[0], _nodes(after)[0]
    same = in_common(*texts)
    nodes = [
        node
        for text in texts
        for node in _OWN_NODE.finditer(text)
        if node.start("name") <= same <= node.end("name")
    ]
    if len(nodes) < len(texts):
        return None
    one, other = (_short_class(node["name"]) for node in nodes)
    return one, other, _INSIDE if any(node.start() for node in nodes) else _CLASS


def _alike(before: str, after: str) -> bool:
    """Return whether two structures have as many arrays, None counted, or some keys less."""
    one, other = ({*_KEY.findall(text)} for text in (before, after))
    count, now = (len(re.findall(r"\*|\bNone\b", text)) for text in (before, after))
    return one < other or other < one or (count == now and one == other)


def _unnumbered(name: str) -> str:
    return name.partition("#")[0]


def _short_class(name: str) -> str:
    return ".".join(name.replace("<locals>.", "").split(".")[-2:])


def _fixed_fields(before: str, after: str) -> tuple[str, str, str] | None:
    """Return the fixed fields of a class in two structures that differ there first; and its name.

    None where they have other classes before that, or differ as objects alone.
    """
    if another_object(before, after):
        return None
    one, other = _nodes(before), _nodes(after)
    for (kind, old), (name, new) in zip(one[1], other[1], strict=False):
        if kind != name:
            return None
        if old != new and not another_object(old, new):
            fields, more = _changed(old, new)
            texts = around(*fields)
            return texts[0], texts[1] + _MORE * (more or one[0] != other[0]), kind
    return None


def _changed(before: str, after: str) -> tuple[tuple[str, str], bool]:
    """Return the fixed fields of a class that differ, `rate=0.1`, and whether objects do as well.

    All of them where some that differ have no name, and no object would stand among them.
    """
    one, other = (split(text[1:-1]) for text in (before, after))
    changed = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    values = [pair for pair in changed if not another_object(*pair)]
    names = [tuple(map(_name_of, pair)) for pair in values]
    objects = len(values) < len(changed)
    apart = len(one) != len(other) or any(a != b or not (a or objects) for a, b in names)
    if not values or apart:
        return (before, after), False
    old, new = (", ".join(texts) for texts in zip(*values, strict=True))
    return (old, new), objects


def _name_of(field: str) -> str:
    name, equals, _ = field.partition("=")
    return name if equals and name.isidentifier() else ""


def _nodes(structure: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a structure without the fixed fields of classes, and these with the class's name."""
    rest, fields, at = "", [], 0
    while begin := _OWN_NODE.search(structure, at):
        depth, end = 1, len(structure)
        for token in _TOKEN.finditer(structure, begin.end()):
            letter = token.group()[0]
            depth += (letter in "([{") - (letter in ")]}")
            if depth == 0:
                end = token.start()
                break
        rest += structure[at : begin.end()]
        fields.append((begin["name"].rpartition(".")[2], structure[begin.end() : end]))
        at = end
    return rest + structure[at:], fields


def _shortened(structure: str) -> str:
    if structure == "*":
        return AN_ARRAY
    return shortened(structure, LONGEST)


def _given_otherwise(pair: Pair, statics: tuple[Static | None, Static | None]) -> Iterator[Change]:
    before, after = statics
    if before is not None and after is not None:
        if before.keyword != after.keyword:
            yield Change(after.name, _WAYS[before.keyword], _WAYS[after.keyword])
    elif after is not None and not is_array(after.name, pair.old.arguments):
        yield Change(after.name, NOT_GIVEN, static_text(after), _STATIC)
    elif before is not None and not is_array(before.name, pair.new.arguments):
        yield Change(before.name, static_text(before), NOT_GIVEN, _STATIC)


def _sentence(built: Built, what: Change) -> str:
    name, before, after = f"`{what.argument}`", what.before, what.after
    if built.function.through == FILTER_JIT:  # which makes static what is no array
        before, after = (text if text != AN_ARRAY else "a value" for text in (before, after))
    if after == ANOTHER_OBJECT:
        return (
            f"The structure of {name} holds `{before}`, whose text is the same as before, but "
            "which is another object."
        )
    if what.type == _CLASS and _unnumbered(before) == _unnumbered(after):
        return f"{name} is of another class of the name {_unnumbered(after)} than before."
    if what.type == _CLASS:
        return f"{name} was of the class {before}, now of {after}."
    if what.type == _INSIDE:
        return f"{name} holds an object of {after} where it held one of {before}."
    if what.type and what.type not in (_OTHER, _STATIC):
        return f"Fixed fields of `{what.type}` in {name} were {before}, now {after}."
    return f"The structure of the arguments changed at {name}: {before} before, {after} now."


def _remedy(built: Built, what: Change) -> str:
    if what.type == _STATIC or (what.before in _WAYS and _is_static(built, what.argument)):
        return (
            f"Pass `{what.argument}` in every call and always by keyword: left out, by keyword and "
            "by position are three programs for one value."
        )
    if what.before in _WAYS:
        return f"Pass `{what.argument}` always {what.before}."
    if _of_dictionaries(what):
        return (
            f"Give `{what.argument}` one kind of dictionary in every call, e.g. dict(...): an "
            "OrderedDict and a defaultdict, by what it makes, are structures of their own."
        )
    if what.after == ANOTHER_OBJECT:
        return (
            f"Make what `{what.argument}` holds (an optimizer, a model) once, outside the loop or "
            "function that makes it, and use it again."
        )
    if what.type in (_CLASS, _INSIDE, _OTHER):
        if what.type == _OTHER or _unnumbered(what.before) != _unnumbered(what.after):
            return ""  # JAX builds a program for each
        return f"Define {_unnumbered(what.after)} once, outside the function or cell that makes it."
    if what.type:
        one, other = (_NUMBER.sub("", text) for text in (what.before, what.after))
        if one != other:
            return ""  # a function, say: no array can stand for it, or for all that differs
        name = _name_of(what.after)
        field = f"`{name}` of `{what.type}`" if name else f"of `{what.type}` that changes"
        return f"Make the field {field} one with data (an array), or let it take few values."
    return (
        f"Give `{what.argument}` the same structure in every call: keys, types of containers, "
        "None, fixed fields of classes."
    )


def _is_static(built: Built, name: str) -> bool:
    statics = built.arguments.statics if built.arguments is not None else ()
    return built.function.through != FILTER_JIT and name in {one.name for one in statics}


def _of_dictionaries(what: Change) -> bool:
    """Return whether an argument is a dictionary of another kind than before."""
    kinds = [_unnumbered(text) for text in (what.before, what.after)]
    if what.type == _CLASS:
        return all(kind in _DICTIONARIES for kind in kinds)
    if what.type == "defaultdict":  # of which the keys stand last
        return what.before.rpartition("(")[2] == what.after.rpartition("(")[2]
    own = re.compile(r"(CustomNode\(collections\.(OrderedDict|defaultdict)\[|\{)")
    keys = [set(re.findall(r"'[^']*'", re.sub("<class '.*?'>", "", text))) for text in kinds]
    return all(map(own.match, kinds)) and kinds[0][0] != kinds[1][0] and keys[0] == keys[1]


def _another_use(pair: Pair, found: list[Difference]) -> Cause | None:
    """Return that a library's function was called elsewhere with another kind of problem."""
    old, built = pair
    apart = built.call_site != old.call_site and built.call_site.origin == "program"
    trees = [one.change for one in found if one.kind is CAUSE]
    other = any(change.after != ANOTHER_OBJECT for change in trees)
    if built.function.origin != "library" or not apart or not other or len(found) < 2:
        return None
    library = package_of(built.function.file) or "a library"
    named = trees[0]
    names = list(dict.fromkeys([named.argument, *(one.change.argument for one in found)]))
    sentence = (
        f"Another use of {library}'s `{built.function.name}`, at {place_text(built.call_site)}: "
        f"what it is given there differs in {names_text(names)} from what it was given at "
        f"{place_text(old.call_site)}."
    )
    return Cause("pytree", *named[:3], sentence, nearest=old.line.id)


CAUSE = ChangeKind(
    name="pytree",
    several="{what} had another structure each time; once, {clause}",
    apart=True,
    looks={"tree": lambda pair, trees: tree_differences(*trees), "given": _given_otherwise},
    sentence=_sentence,
    remedy=_remedy,
    instead=_another_use,
)
