"""Texts of values and structures, made short enough to be read side by side."""

from __future__ import annotations

import re
from pathlib import PurePath

LONGEST = 120
"""Characters of a structure that are shown."""

ANOTHER_OBJECT = "the same text, another object"

_SHOWN_BEFORE = 40
"""Characters before the first difference that are shown at most."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_BETWEEN = re.compile(r"[\s,(\[{]")
_WITH_ADDRESS = re.compile(r"<(?:function |bound method )?([^<>=\s]*(?:<\w+>[^<>=\s]*)*)[^<>]*$")
_FUNCTION = re.compile(r"<(?P<name>\w[^\s]*|<\w+>) at (?P<file>[^<>]*?):(?P<line>\d+)>")
_PACKAGES = ("site-packages", "dist-packages")


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


def another_object(before: str, after: str) -> str:
    """Return the name of the first object of which only the address differs; empty if none."""
    if _ADDRESS.sub("", before) != _ADDRESS.sub("", after):
        return ""
    for one, other in zip(_ADDRESS.finditer(before), _ADDRESS.finditer(after), strict=True):
        if one.group() != other.group():
            found = _WITH_ADDRESS.search(before[: one.start()])
            return found[1].removesuffix(",") if found and found[1] else "an object"
    return ""


def _cut(text: str, begin: int, longest: int) -> str:
    end = begin + longest
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def short_functions(text: str) -> str:
    """Return a value's text with the functions in it as `name (file.py:3)`."""

    def short(match: re.Match[str]) -> str:
        return f"{_own_name(match['name'])} ({PurePath(match['file']).name}:{match['line']})"

    return _FUNCTION.sub(short, text) if " at " in text else text


def place_of(text: str) -> tuple[str, int]:
    """Return the file and line of a value that is a function; ("", 0) where it is none."""
    match = _FUNCTION.fullmatch(text)
    return (match["file"], int(match["line"])) if match else ("", 0)


def _own_name(qualname: str) -> str:
    return qualname.rpartition("<locals>.")[2]


def library_of(file: str) -> str:
    """Return the installed package that a file belongs to, empty if it belongs to none."""
    parts = PurePath(file.replace("\\", "/")).parts
    for number, part in enumerate(parts[:-1]):
        if part in _PACKAGES:
            return parts[number + 1].removesuffix(".py")
    return ""


def with_article(noun: str) -> str:
    """Return a type's name with its article: an int32, a uint32."""
    return f"an {noun}" if noun[:1] in "aeio" else f"a {noun}"
