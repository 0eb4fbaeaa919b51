"""The values of two builds, read from what was recorded: types, shapes, places, static values."""

from __future__ import annotations

import functools
import re
from pathlib import PurePath
from typing import NamedTuple

from harness.jaxhooks import events
from harness.jaxhooks.events import LONGEST_VALUE
from harness.profiles.causes.cause import Cause, Change, Look, Pair, Shape, Way

_TYPE = re.compile(r"(?P<dtype>[^\[]*)\[(?P<shape>[^\]]*)\](?P<end>\}?)", re.DOTALL)
_SPACE = re.compile(r"<(?:host|any|device)>$")
"""The space in memory that is part of a type; `key<fry>` is a dtype."""

_SHARDING = re.compile(
    r"(?P<how>\w+\(.*\))(?: on (?P<devices>\S+))?(?: in (?P<memory>\S+))?", re.DOTALL
)


class ArrayType(NamedTuple):
    """The parts of an array's type."""

    dtype: str
    space: str
    """In memory, `<host>` for example; empty for the usual one."""
    shape: Shape
    """Without the names of mesh axes; a size that is no number is its text."""


@functools.lru_cache(maxsize=50_000)  # a program with many shapes asks for each some times
def array_type(aval: str) -> ArrayType | None:
    """Return the parts of a type such as `float32[8@x,4]`; None where it is none."""
    match = _TYPE.match(aval.lstrip("~"))
    if match is None:
        return None
    space = _SPACE.search(match["dtype"])
    dtype = match["dtype"][: space.start()] if space else match["dtype"]
    dtype += match["end"]  # `Ref{float32[3]}` is a Ref{float32}
    texts = re.sub(r"@[^,\]]*(\([^)]*\))?", "", match["shape"]).split(",")
    shape = tuple(int(text) if text.isdigit() else text for text in texts if text)
    return ArrayType(dtype, space.group() if space else "", shape)


def shape_text(shape: Shape) -> str:
    """Return a shape as Python writes it."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def committed(leaf: events.Leaf) -> bool:
    """Return whether JAX must leave an argument where it is; it takes a given type by its word."""
    return leaf.committed or (leaf.kind == "jax.ShapeDtypeStruct" and bool(leaf.sharding))


def lies(leaf: events.Leaf) -> tuple[str, Way]:
    """Return where an array is committed to."""
    return (_where(leaf), "") if committed(leaf) else ("", "uncommitted")


def _where(leaf: events.Leaf) -> str:
    """Return a device's name where there is one, and else the whole sharding."""
    match = _SHARDING.fullmatch(leaf.sharding)
    if match and match["devices"] and match["how"] == "SingleDeviceSharding()":
        return match["devices"] + (f" in {match['memory']}" if match["memory"] else "")
    return leaf.sharding


def moved(old: events.Leaf, new: events.Leaf) -> tuple[bool, tuple[str, str]] | None:
    """Return whether an array lies alike on other devices, and where; None if it did not move."""
    if not committed(old) or not committed(new) or old.sharding == new.sharding:
        return None
    one, other = (_SHARDING.fullmatch(leaf.sharding) for leaf in (old, new))
    alike = one and other and one.group("how", "memory") == other.group("how", "memory")
    return bool(alike), (_where(old), _where(new))


LONGEST = 80

CONTAINERS = ("str", "bytes", "int", "tuple", "frozenset")
"""Types of values that are equal where all of their text is, of which a part may be recorded."""

_BEGIN = 60
"""Characters that are shown of a value whose end is not recorded."""

_SHOWN_BEFORE = 40
"""Characters before the first difference that are shown at most."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_BETWEEN = re.compile(r"[\s,(\[{]")
_WITH_ADDRESS = re.compile(r"<(?:function |bound method )?([^<>=\s]*(?:<\w+>[^<>=\s]*)*)[^<>]*$")
_FUNCTION = re.compile(r"<(?P<name>[\w<]\S*) at (?P<file>[^<>]*?):(?P<line>\d+)>")


def around(before: str, after: str) -> tuple[str, str]:
    """Return two texts from shortly before their first difference on, on one line each.

    Addresses of objects are left out, if the texts differ in something else.
    """
    texts = [" ".join(text.split()) for text in (before, after)]
    plain = [_ADDRESS.sub("", text) for text in texts]
    one, other = texts = plain if plain[0] != plain[1] else texts
    same, begin = in_common(one, other), 0
    if max(map(len, texts)) > LONGEST:
        opened = [match.end() for match in _BETWEEN.finditer(one, 0, same)]
        begin = next((place for place in opened if same - place <= _SHOWN_BEFORE), same)
    first, second = (_cut(text, begin) for text in texts)
    return first, second


def in_common(one: str, other: str) -> int:
    """Return how many characters two texts have in common from their beginning on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(text: str, begin: int) -> str:
    end = begin + LONGEST
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def another_object(before: str, after: str) -> str:
    """Return the name of the first object of which only the address differs; empty if none."""
    if _ADDRESS.sub("", before) != _ADDRESS.sub("", after):
        return ""
    for one, other in zip(_ADDRESS.finditer(before), _ADDRESS.finditer(after), strict=True):
        if one.group() != other.group():
            name = _WITH_ADDRESS.search(before[: one.start()])
            return name[1].removesuffix(",") if name and name[1] else "an object"
    return ""


def short_functions(text: str) -> str:
    """Return a value's text with the functions in it as `name (file.py:3)`."""

    def short(match: re.Match[str]) -> str:
        name = match["name"].rpartition("<locals>.")[2]
        return f"{name} ({PurePath(match['file']).name}:{match['line']})"

    return _FUNCTION.sub(short, text) if " at " in text else text


class Defined(NamedTuple):
    """Where a function that a value is stands."""

    file: str = ""
    line: int = 0
    name: str = ""


def defined_at(value: str) -> Defined:
    """Return where a value that is a function is defined; nothing where it is none."""
    match = _FUNCTION.fullmatch(value)
    if match is None:
        return Defined()
    return Defined(match["file"], int(match["line"]), match["name"].rpartition("<locals>.")[2])


def static_text(static: events.Static, other: events.Static | None = None) -> tuple[str, Way]:
    """Return a static value, and how it differs from another one of the same text."""
    text = short_functions(static.value)
    if other is None or static.value != other.value:
        return text, ""
    if static.type != other.type:
        return f"{text} ({static.type})", ""
    if static.type in CONTAINERS or len(static.value) >= LONGEST_VALUE:
        return f"{text[:_BEGIN]}{'…' * (len(text) > _BEGIN)}", "rest"
    return text, "object"


def static_change(before: events.Static, after: events.Static) -> Cause:
    """Return the change of a static value, in texts."""
    (one, way), (other, now) = static_text(before, after), static_text(after, before)
    return Change(after.name, one, other, ways=(way, now))


def is_number(value: str) -> bool:
    """Return whether a value is a number, by its `repr`."""
    return re.match(r"(np\.\w+\()?-?(\d|nan\b|inf\b)", value) is not None


_DTYPE = re.compile(
    r"(?:<class '(?:\w+\.)*|dtype\('|')((?:bfloat|float|u?int|complex|bool)\w*)'\)?>?"
)
_NUMBER = re.compile(r"np\.\w+\((.*)\)")


def are_equal(one: str, other: str) -> bool:
    """Return whether values of two types are equal, by their `repr`: numbers, or one dtype."""
    plain = [_plain(text) for text in (one, other)]
    return None not in plain and plain[0] == plain[1]


def _plain(text: str) -> complex | str | None:
    if dtype := _DTYPE.fullmatch(text):
        return dtype[1]
    text = _NUMBER.sub(r"\1", text)
    try:
        return complex({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return None


def numbers_aside(value: str) -> str:
    """Return the `repr` of a value without the digits in it."""
    return re.sub(r"\d+", "", value)


def numbers_in(value: str) -> Shape:
    """Return the whole numbers in the `repr` of a value."""
    return tuple(map(int, re.findall(r"\d+", value)))


def is_array(name: str, arguments: events.Arguments | None) -> bool:
    """Return whether an argument was given as an array."""
    return arguments is not None and any(leaf.path == name for leaf in arguments.leaves)


CONTEXTS = {
    "abstract_mesh_context_manager": "mesh",
    "mesh_context_manager": "mesh",
    "compute_on_context_manager": "compute_on",
    "xla_metadata_context_manager": "xla_metadata",
    "axis_env_state": "named axes",
}
"""JAX's names of what a user sets with a context manager, in words."""


def setting_change(name: str, before: str | None, after: str | None) -> Cause:
    """Return the change of a setting or option."""
    ways: tuple[Way, Way] = ("absent" if before is None else "", "absent" if after is None else "")
    return Change(name, before or "", after or "", ways=ways)


def of_operations(*names: str) -> Look:
    """Return what looks at those parameters of JAX's own operations that stand for a cause."""

    def look(pair: Pair, statics: tuple[events.Static, events.Static]) -> list[Cause] | None:
        before, after = statics
        if not pair.new.eager or after.name not in names:
            return None
        return [static_change(before, after)]

    return look


def place_text(frame: events.Frame) -> str:
    """Return a line, by the name of its file alone: `train.py:88`."""
    return f"{PurePath(frame.file).name}:{frame.line}"
