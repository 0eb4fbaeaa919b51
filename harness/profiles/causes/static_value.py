"""Another value of a static argument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.profiles.causes.cause import Cause, Change, Pair, Remedy, WithoutEdit
from harness.profiles.causes.outside import library_remedy
from harness.profiles.causes.values import (
    defined_at,
    is_array,
    is_number,
    numbers_aside,
    static_change,
    static_text,
)
from harness.profiles.model import Built
from harness.profiles.names import FILTER_JIT, package_of, wrappers
from harness.watch.events import Static


def values(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Change]:
    """Look at a static argument.

    The form is `recreated` for another object of one function or type, and `another` for a function
    that is defined elsewhere, or an object of another type.
    """
    before, after = statics
    what = static_change(before, after)
    if pair.new.eager:
        return [what]
    what = what._replace(type=after.type)
    old, new = defined_at(before.value), defined_at(after.value)
    if after.object and not is_number(after.value) and (before.type, old) != (after.type, new):
        return [what._replace(form="another")]
    if new.file:
        place, library = f"{new.file}:{new.line}", package_of(new.file)
        what = what._replace(before=old.name, after=new.name)
        return [what._replace(form="recreated", place=place, library=library)]
    return [what._replace(form="recreated" if "object" in what.ways else "")]


def or_array(pair: Pair, statics: tuple[Static | None, Static | None]) -> Iterator[Change]:
    """Look at an argument that is static in one of the two builds and an array in the other."""
    before, after = statics
    if before is None and after is not None and is_array(after.name, pair.old.arguments):
        yield Change(after.name, "", static_text(after)[0], "array", ("array", ""))
    if after is None and before is not None and is_array(before.name, pair.new.arguments):
        yield Change(before.name, static_text(before)[0], "", "array", ("", "array"))


def remedy(pair: Pair, what: Change, statics: tuple[Static, Static]) -> Remedy | None:
    """Return what to do about a static argument; None where each value is another program."""
    built, name = pair.new, what.argument
    if what.form == "array":
        return Remedy("array or never", name)
    old, new = statics
    number = is_number(new.value)
    if what.type == "bool":  # two values are few, and a library's mode
        return Remedy("dynamic bool", name) if built.function.origin == "program" else None
    if what.form == "another" or what.type == "type":
        return None
    retyped = old.value == new.value and old.type != new.type
    if not number and (retyped or numbers_aside(old.value) != numbers_aside(new.value)):
        return None
    if what.form == "recreated" and what.place:
        if what.library:
            return library_remedy(built, what.library)
        once = "static function once" if what.type == "function" else "static object once"
        return Remedy(once, name)
    if what.form == "recreated":
        return Remedy("equality", name)
    if FILTER_JIT in wrappers(built.function):
        if not number:
            return Remedy("filter_jit few values", name)
        whole = new.type != "float" and numbers_aside(new.value) in ("", "-")
        kind = "filter_jit array unless it sizes" if whole else "filter_jit array"
        return Remedy(kind, name, new.value)
    if built.function.origin == "library" or not number:
        return Remedy("few values", name)  # no array can stand for shapes, classes
    return Remedy("dynamic unless it sizes" if "int" in new.type else "dynamic", name)


def tried(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
    """Make a static number a dynamic argument."""
    values_ = {
        static.value
        for built in builds
        for static in (built.arguments.statics if built.arguments else ())
        if static.name == cause.argument
    }
    plain = all(re.fullmatch(r"(np\.\w+\()?-?\d[^ ]*|True|False", text) for text in values_)
    if not plain or not cause.argument.isidentifier():
        return None
    return WithoutEdit({"how": "dynamic", "argument": cause.argument})
