"""What differs between two structures of arguments, by argument."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.texts import ANOTHER_OBJECT, LONGEST, another_object, around

_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def tree_differences(old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Yield (argument, before, after) for each argument whose structure or way in differs.

    Args:
        old: as it stands in `events.Arguments.tree`: `x, params: PyTreeDef({'w': *}), scale=`.
        new: the same of the later build.
    """
    one, other = arguments_of(old), arguments_of(new)
    told = False
    for name in [*other, *(name for name in one if name not in other)]:
        before, after = one.get(name), other.get(name)
        if before is None or after is None or before == after:
            if before == after:
                continue
            if before is None and _twin(name) in one:
                told = True
                yield name.rstrip("="), *_ways(name)
            elif after is None and _twin(name) in other:
                continue
            else:
                told = True
                yield name.rstrip("="), _given(before), _given(after)
        else:
            told = True
            yield name.rstrip("="), *_both(before, after)
    if not told:  # the order of keywords and the like
        yield "arguments", *around(old, new)


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
    parts, depth, quote, start = [], 0, "", 0
    for position, character in enumerate(text):
        if quote:
            if character == quote and text[position - 1] != "\\":
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in _BRACKETS:
            depth += 1
        elif character in _BRACKETS.values():
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _twin(name: str) -> str:
    return name.removesuffix("=") if name.endswith("=") else name + "="


def _ways(name: str) -> tuple[str, str]:
    ways = "by position", "by keyword"
    return ways if name.endswith("=") else (ways[1], ways[0])


def _given(structure: str | None) -> str:
    if structure is None:
        return "not given"
    return "given" if structure == "*" else _shortened(structure)


def _both(before: str, after: str) -> tuple[str, str]:
    """Return two structures, shortened to where they differ."""
    if "*" in (before, after):
        return _shortened(before), _shortened(after)
    name = another_object(before, after)
    return (name, ANOTHER_OBJECT) if name else around(before, after)


def _shortened(structure: str) -> str:
    if structure == "*":
        return "an array"
    structure = " ".join(structure.split())
    return structure if len(structure) <= LONGEST else structure[:LONGEST] + "…"
