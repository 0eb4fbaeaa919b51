"""Another value of a static argument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from harness.profiles.causes import another_program
from harness.profiles.causes.cause import UNSURE, Cause, Change, ChangeKind, Pair, WithoutEdit
from harness.profiles.causes.words import (
    AN_ARRAY,
    FILTER_JIT,
    defined_at,
    is_array,
    library_remedy,
    static_text,
)
from harness.profiles.model import Built
from harness.profiles.names import package_of
from harness.watch.events import Static

_ANOTHER = "another"
"""Stands for the type of a function that is defined elsewhere, or an object of another type."""


def _value(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Change]:
    before, after = statics
    texts = static_text(before, after), static_text(after, before)
    if pair.new.eager:
        return [Change(after.name, *texts)]
    file, line = place = defined_at(after.value)
    numbered = after.object and not _is_number(after.value)
    if numbered and (before.type, defined_at(before.value)) != (after.type, place):
        return [Change(after.name, *texts, _ANOTHER)]
    defined = f"{file}:{line}" if file else after.type if " (object " in texts[1] else ""
    return [Change(after.name, *texts, after.type, defined)]


def _or_array(pair: Pair, statics: tuple[Static | None, Static | None]) -> Iterator[Change]:
    before, after = statics
    if before is None and after is not None and is_array(after.name, pair.old.arguments):
        yield Change(after.name, AN_ARRAY, static_text(after))
    if after is None and before is not None and is_array(before.name, pair.new.arguments):
        yield Change(before.name, static_text(before), AN_ARRAY)


def _sentence(built: Built, what: Change) -> str:
    name, texts = f"`{what.argument}`", (what.before, what.after)
    if AN_ARRAY in texts:
        before, after = (text if text == AN_ARRAY else f"the static {text}" for text in texts)
        return f"{name} was {before}, now it is {after}."
    if what.defined:
        return f"{name} is static, and is {_made_anew(what)}."
    return f"{name} is static and was {what.before}, now {what.after}: every value is built anew."


def _made_anew(what: Change) -> str:
    """Return what a static argument is that differs from the earlier one only as an object."""
    file, _, line = what.defined.rpartition(":")
    if not file:
        return f"another `{what.type.rpartition('.')[2]}` each time"
    library = package_of(file)
    place = f"{PurePath(file).name}:{line}{f' of {library}' if library else ''}"
    made = f"another object each time: a {what.type} of"
    if what.type == "function" or what.type.endswith("PjitFunction"):
        made = f"a {'' if what.type == 'function' else 'jitted '}function made anew each time:"
    return f"{made} `{what.after.partition(' (')[0]}` at {place}"


def _remedy(built: Built, what: Change) -> str:
    name = f"`{what.argument}`"
    if AN_ARRAY in (what.before, what.after):
        return f"Pass {name} always as an array, or never."
    if what.type == "bool":
        own = built.function.origin == "program"  # two values are few, and a library's mode
        how = f"depend on {name}, make it a dynamic argument, an array (with jnp.where)."
        return UNSURE + how if own else ""
    words = [re.sub(r"\d+", "", text) for text in (what.before, what.after)]
    if what.type in (_ANOTHER, "type") or (not _is_number(what.after) and words[0] != words[1]):
        return ""  # each is another program
    file = what.defined.rpartition(":")[0]
    if file:
        if library := package_of(file):
            return library_remedy(built, library)
        if what.type == "function":
            return (
                "Define the function once, outside the loop or function that makes it, and pass "
                "what changes in it as an argument."
            )
        return f"Make {name} once, outside the loop or function that makes it."
    if what.defined:
        return (
            f"Pass the same object as {name}, or give its type, and those of what it holds, "
            "__eq__ and __hash__ by content (a frozen dataclass)."
        )
    if built.function.through == FILTER_JIT:
        return _of_filtered(what)
    if built.function.origin == "library" or not _is_number(what.after):
        return f"Let {name} take few values."  # no array can stand for shapes, classes
    if "int" in what.type:
        return (
            f"If {name} sizes no array, make it a dynamic argument (with jax.lax.fori_loop or "
            "while_loop where it counts steps); else let it take few values."
        )
    return f"Make {name} a dynamic argument, or let it take few values."


def _of_filtered(what: Change) -> str:
    name = f"`{what.argument}`"
    if not _is_number(what.after):
        return f"Let {name} take few values: eqx.filter_jit takes all that is no array as static."
    advice = f"Make {name} an array, e.g. `jnp.asarray({what.after})`"
    if "." not in what.after and "e" not in what.after:
        advice += ", if it is only computed with (no size, no count that Python needs)"
    return f"{advice}: eqx.filter_jit takes all that is no array as static."


def _is_number(text: str) -> bool:
    return re.match(r"(np\.\w+\()?-?\d", text) is not None


def _tried(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    values = cause.before, cause.after
    plain = all(re.fullmatch(r"(np\.\w+\()?-?\d[^ ]*|True|False", text) for text in values)
    if not plain or not cause.argument.isidentifier():
        return None
    told = {"how": "dynamic", "argument": cause.argument}
    return WithoutEdit(told, f"`{cause.argument}` of {{name}} as a dynamic argument")


CAUSE = ChangeKind(
    name="static value",
    several="{what} is static and took {n} values",
    apart=True,
    looks={"statics": _value, "given": _or_array},
    sentence=_sentence,
    remedy=_remedy,
    tried=_tried,
    instead=another_program.of,
    each=True,
)
