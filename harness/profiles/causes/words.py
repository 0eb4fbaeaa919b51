"""Words that several causes share: of arrays, values, places and JAX's own operations."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from harness.profiles.causes.cause import Cause, Change, Look, Pair
from harness.profiles.names import package_of
from harness.records.units import some
from harness.watch import events
from harness.watch.events import LONGEST_VALUE

if TYPE_CHECKING:
    from harness.profiles.model import Built

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
    shape: str
    """As Python writes it, without the names of mesh axes."""


@functools.lru_cache(maxsize=50_000)  # a program with many shapes asks for each some times
def array_type(aval: str) -> ArrayType | None:
    """Return the parts of a type such as `float32[8@x,4]`; None where it is none."""
    match = _TYPE.match(aval.lstrip("~"))
    if match is None:
        return None
    space = _SPACE.search(match["dtype"])
    dtype = match["dtype"][: space.start()] if space else match["dtype"]
    dtype += match["end"]  # `Ref{float32[3]}` is a Ref{float32}
    shape = re.sub(r"@[^,\]]*(\([^)]*\))?", "", match["shape"])
    shape = f"({shape},)" if shape and "," not in shape else f"({shape.replace(',', ', ')})"
    return ArrayType(dtype, space.group() if space else "", shape)


def committed(leaf: events.Leaf) -> bool:
    """Return whether JAX must leave an argument where it is; it takes a given type by its word."""
    return leaf.committed or (leaf.kind == "jax.ShapeDtypeStruct" and bool(leaf.sharding))


def committed_text(leaf: events.Leaf) -> str:
    """Return where an array is committed to."""
    return _where(leaf) if committed(leaf) else "not committed"


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
"""Characters of a structure that are shown."""

ANOTHER_OBJECT = "the same text, another object"
NOT_GIVEN = "not given"
AN_ARRAY = "an array"

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


def around(before: str, after: str, longest: int = LONGEST) -> tuple[str, str]:
    """Return two texts from shortly before their first difference on, on one line each.

    Addresses of objects are left out, if the texts differ in something else.
    """
    texts = [" ".join(text.split()) for text in (before, after)]
    plain = [_ADDRESS.sub("", text) for text in texts]
    one, other = texts = plain if plain[0] != plain[1] else texts
    same, begin = in_common(one, other), 0
    if max(map(len, texts)) > longest:
        opened = [match.end() for match in _BETWEEN.finditer(one, 0, same)]
        begin = next((place for place in opened if same - place <= _SHOWN_BEFORE), same)
    first, second = (_cut(text, begin, longest) for text in texts)
    return first, second


def in_common(one: str, other: str) -> int:
    """Return how many characters two texts have in common from their beginning on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(text: str, begin: int, longest: int) -> str:
    end = begin + longest
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def another_object(before: str, after: str) -> str:
    """Return the name of the first object of which only the address differs; empty if none."""
    if _ADDRESS.sub("", before) != _ADDRESS.sub("", after):
        return ""
    for one, other in zip(_ADDRESS.finditer(before), _ADDRESS.finditer(after), strict=True):
        if one.group() != other.group():
            found = _WITH_ADDRESS.search(before[: one.start()])
            return found[1].removesuffix(",") if found and found[1] else "an object"
    return ""


def short_functions(text: str) -> str:
    """Return a value's text with the functions in it as `name (file.py:3)`."""

    def short(match: re.Match[str]) -> str:
        name = match["name"].rpartition("<locals>.")[2]
        return f"{name} ({PurePath(match['file']).name}:{match['line']})"

    return _FUNCTION.sub(short, text) if " at " in text else text


def defined_at(text: str) -> tuple[str, int]:
    """Return the file and line of a value that is a function; ("", 0) where it is none."""
    match = _FUNCTION.fullmatch(text)
    return (match["file"], int(match["line"])) if match else ("", 0)


def static_text(static: events.Static, other: events.Static | None = None) -> str:
    """Return a static value; with its type, or as an object, where the text alone is the same."""
    text = short_functions(static.value)
    if other is None or static.value != other.value:
        return text
    if static.type != other.type:
        return f"{text} ({static.type})"
    if static.type in CONTAINERS or len(static.value) >= LONGEST_VALUE:
        return f"{text[:_BEGIN]}{'…' * (len(text) > _BEGIN)} (the rest differs)"
    return f"{text} (object {static.object})"


def is_array(name: str, arguments: events.Arguments | None) -> bool:
    """Return whether an argument was given as an array."""
    return arguments is not None and any(leaf.path == name for leaf in arguments.leaves)


def setting_change(name: str, before: str | None, after: str | None) -> Change:
    """Return the change of a setting or option."""
    before, after = (NOT_GIVEN if value is None else value for value in (before, after))
    return Change(name, before, after)


DERIVED = ", differentiated or batched outside jit"

MENTIONED = 3
"""Names that a sentence tells of."""

FILTER_JIT = "equinox.filter_jit"


def place_text(frame: events.Frame) -> str:
    """Return a line, by the name of its file alone: `train.py:88`."""
    return f"{PurePath(frame.file).name}:{frame.line}"


def names_text(arguments: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return some([f"`{name}`" for name in arguments], MENTIONED)


def jax_function(built: Built) -> str:
    """Return one of JAX's own functions, and who called it: JAX's `add` by optax at fit.py:8."""
    known = f"JAX's `{built.function.name}`"
    if not built.call_site.file:
        return known
    library = _running_library(built)
    return f"{known}{f' by {library}' if library else ''} at {place_text(built.call_site)}"


def alone(built: Built) -> str:
    """Return how one of JAX's own functions came to be built by itself."""
    if _transformed(built):
        return DERIVED
    return ", run by itself" if built.times("compile") else ""


def of_operations(*names: str) -> Look:
    """Return what looks at those parameters of JAX's own operations that stand for a cause."""

    def look(pair: Pair, statics: tuple[events.Static, events.Static]) -> list[Change] | None:
        before, after = statics
        if not pair.new.eager or after.name not in names:
            return None
        return [Change(after.name, static_text(before, after), static_text(after, before))]

    return look


OF_LOOPS = "Jit the function that it is in, or define what it is given once, outside."
INSIDE_JIT = "Do it inside the jitted function, or build small arrays with numpy."
"""What to do about one operation, where it is not known which function to jit."""

DIFFERENTIATED = "Jit the whole function that is differentiated or batched."
OF_ITERATION = (
    "Python loops over an array of JAX's there, or unpacks it: give it np.asarray(array) for that."
)

_KEYS = re.compile(r"key<|uint32\[\d+,[24]\]$")
"""Types of several random keys, of threefry or rbg; JAX parts typed ones by their numbers."""


def is_iteration(built: Built) -> bool:
    """Return whether it parts an array for Python's `for`, `jax.Array.__iter__`: no random keys."""
    given = built.arguments.leaves if built.arguments is not None else ()
    keys = any(_KEYS.match(leaf.aval) for leaf in given)
    return built.eager and built.function.name == "unstack" and not keys


def eager_remedy(built: Built) -> str:
    """Return what to do about an operation of JAX's that runs by itself."""
    if not built.call_site.file or not built.times("compile"):
        return ""
    if is_iteration(built):
        return OF_ITERATION
    library = _running_library(built)
    if library:
        return (
            f"It is {library} that runs it: JAX's persistent cache keeps it for the next run "
            "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)."
        )
    if built.function.through and built.operation:  # a loop with the user's functions
        return OF_LOOPS
    if built.function.through:
        return "Jit it once, outside the loop or function that does so, and keep the result."
    if _transformed(built):
        return DIFFERENTIATED
    return INSIDE_JIT


def library_remedy(built: Built, library: str) -> str:
    """Return what can be done about what a library makes anew, from the user's own line."""
    site = built.call_site
    if site.origin != "program":
        return ""
    return (
        f"{library or 'A library'} makes it, used at {place_text(site)}: make the object that is "
        f"used there once, and use it again; where that changes nothing, {library or 'the library'}"
        " makes a new one in every call: jit that call, if it allows that."
    )


def options_remedy(built: Built, what: Change) -> str:
    """Return what to do about a function that is jitted in several ways."""
    if built.function.origin == "library":
        return library_remedy(built, package_of(built.function.file))
    return f"Jit `{built.function.name}` once, with one set of options."


def _running_library(built: Built) -> str:
    """Return the library that called JAX on behalf of the program; empty if none stood between."""
    if built.call_site.origin != "program" or built.frames[-1].origin != "library":
        return ""
    return package_of(built.frames[-1].file)


def _transformed(built: Built) -> bool:
    """Return whether it is known that a function was differentiated or batched.

    A function of JAX's that runs while another is traced (`jax.ensure_compile_time_eval`) is also
    known by its trace alone.
    """
    at_once = built.eager and built.line.parent
    return bool(built.line.derived) and not at_once


_OBJECT = re.compile(r"object \d+")
"""What objects of one text are told apart by: it says nothing to a reader."""


def said(cause: Cause, before: bool = True) -> str:
    """Return a cause in words.

    Args:
        cause: of a build.
        before: whether it was recorded what was built earlier.
    """
    if cause.kind == "first":
        if before:
            return "its first build"
        return (
            "its first build since the budget began; open the budget before the warm-up to see "
            "what changed"
        )
    change = f"{cause.before} -> {cause.after}" if cause.before or cause.after else ""
    if not cause.sentence:
        parts = (cause.kind, cause.argument and f"`{cause.argument}`", change)
        return " ".join(filter(None, parts))
    told = cause.sentence.rstrip(".")
    numbered = _OBJECT.sub("", cause.before) == _OBJECT.sub("", cause.after)
    if change and not numbered and not (cause.before in told and cause.after in told):
        told = f"{told} ({cause.argument or cause.kind}: {change})"
    return told
