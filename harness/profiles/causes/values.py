"""Texts of values and structures, made short enough to be read side by side."""

from __future__ import annotations

import re
from pathlib import PurePath

from harness.profiles.causes.cause import Change
from harness.watch import events
from harness.watch.events import LONGEST_VALUE

LONGEST = 120
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
_FUNCTION = re.compile(r"<(?P<name>\w[^\s]*|<\w+>) at (?P<file>[^<>]*?):(?P<line>\d+)>")


def around(before: str, after: str, longest: int = LONGEST) -> tuple[str, str]:
    """Return two texts from shortly before their first difference on, on one line each.

    Addresses of objects are left out, if the texts differ in something else.
    """
    texts = [" ".join(text.split()) for text in (before, after)]
    plain = [_ADDRESS.sub("", text) for text in texts]
    one, other = texts = plain if plain[0] != plain[1] else texts
    pairs = enumerate(zip(one, other, strict=False))
    same = next((n for n, pair in pairs if pair[0] != pair[1]), min(map(len, texts)))
    begin = 0
    if max(map(len, texts)) > longest:
        opened = [match.end() for match in _BETWEEN.finditer(one, 0, same)]
        begin = next((place for place in opened if same - place <= _SHOWN_BEFORE), same)
    first, second = (_cut(text, begin, longest) for text in texts)
    return first, second


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
