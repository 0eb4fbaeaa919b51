"""Another function object, another value of a static argument, other options of `jax.jit`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.jaxhooks.events import Static
from harness.profiles.causes.again import library_remedy
from harness.profiles.causes.cause import Cause, Change, Difference, Pair, Remedy, WithoutEdit
from harness.profiles.causes.values import (
    are_equal,
    defined_at,
    is_array,
    is_number,
    numbers_aside,
    setting_change,
    static_change,
    static_text,
)
from harness.profiles.model import Built
from harness.profiles.names import FILTER_JIT, package_of, wrappers

_KINDS = ("new function object", "pytree")
"""What a function that is recreated for another program differs in."""

_DONATED = ("donated", "donate_argnames", "donate_argnums")
"""Of one thing; the first that differs is named."""


def function_objects(pair: Pair, item: None) -> Iterable[Cause]:
    """Look at the function object; the form is `changed` where what it closes over differs."""
    before, after = (str(built.line.object) for built in pair)
    # One that is jitted once would return the result of the first one's constants for all.
    name, form = pair.new.function.name, "changed" if pair.is_changed else ""
    yield Change(name, before, after, form, ("object", "object"))


def traced_for(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Cause] | None:
    """Look at what JAX traced of a function, or calls back: a parameter of its own operations."""
    before, after = statics
    traced = "Jaxpr" in after.type or "{ lambda" in after.value or after.name == "callback"
    if not pair.new.eager or not traced:
        return None
    objects = str(before.object), str(after.object)
    return [Change(after.name, *objects, ways=("object", "object"))]


def recreated_remedy(pair: Pair, what: Cause, item: None) -> Remedy | None:
    """Return where to make a function once."""
    built, changed = pair.new, what.form == "changed"
    function, around = built.function, wrappers(built.function)
    if function.origin == "library":
        if FILTER_JIT in around:
            return Remedy("filter_jit once and pass" if changed else "filter_jit once")
        return library_remedy(built, package_of(function.file), changed)
    if "partial" in around:
        return Remedy("pass what it binds" if changed else "partial once")
    if "method" in around:
        return Remedy("method and pass" if changed else "method")
    if built.line.kind == "trace":  # as `jax.eval_shape` only traces
        return Remedy("define once and pass")
    return Remedy("jit once and pass" if changed else "jit once")


def another_program(pair: Pair, differences: list[Difference]) -> Cause | None:
    """Return the cause where a function that is recreated has a program like none before.

    To make it once, which is the remedy of the one, would not leave out the other.
    """
    old, new = pair
    recreated = [one for one in differences if one.kind.name == _KINDS[0] or one.change.recreated]
    others = [one for one in differences if one not in recreated]
    if not recreated or any(one.kind.name not in _KINDS for one in others):
        return None
    if new.eager or not old.work or new.process.works.get(new.work) != new.line.id:
        return None
    what = recreated[0].change
    own = new.function.origin == "program" and not others
    remedy = Remedy("pass what differs", what.argument) if own else None
    change = Change(what.argument, what.before, what.after, ways=what.ways)
    return change._replace(kind="another program", remedy=remedy, nearest=old.line.id)


def chosen_statics(pair: Pair, chosen: tuple[dict[str, str], dict[str, str]]) -> Iterator[Cause]:
    """Look at which arguments are static."""
    names = any("static_argnames" in jit for jit in chosen)
    name = "static_argnames" if names else "static_argnums"
    before, after = (jit.get(name, "()") for jit in chosen)
    yield Change(name, before, after)


_Option = tuple[str, str | None, str | None]


def donation(pair: Pair, option: _Option) -> Iterable[Cause] | None:
    """Look at which arguments are donated."""
    name, before, after = option
    if name not in _DONATED:
        return None
    old, new = (built.settings.jit if built.settings else {} for built in pair)
    if name != next(one for one in _DONATED if old.get(one) != new.get(one)):
        return ()
    ways = ("" if before else "nothing", "" if after else "nothing")
    return [Change(after or before or "", before or "", after or "", ways=ways)]  # type: ignore[arg-type]


def ahead_of_time(pair: Pair, option: _Option) -> list[Cause] | None:
    """Look at what a program was built with ahead of time."""
    compiled = pair.new.line.kind == "compile" and option[0] == "compiler_options"
    return [setting_change(*option)] if option[0] == "lowering_platforms" or compiled else None


def options_remedy(pair: Pair, what: Cause, item: _Option) -> Remedy | None:
    """Return what to do about a function that is jitted in several ways."""
    built = pair.new
    if built.function.origin == "library":
        return library_remedy(built, package_of(built.function.file))
    return Remedy("one set of options", built.function.name)


def ahead_of_time_remedy(pair: Pair, what: Cause, item: _Option) -> Remedy:
    """Return what to do about a program that is built in several ways ahead of time."""
    return Remedy("ahead of time", what.argument, pair.new.function.name)


def static_values(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Cause]:
    """Look at a static argument.

    The form is `class recreated` for an object of another class of the same name, `recreated` for
    another object of one function or type, and `another` for a function
    that is defined elsewhere, or an object of another type; `unequal` for an object that equals no
    earlier one by an `__eq__` that was written for its type.
    """
    before, after = statics
    what = static_change(before, after)
    if pair.new.eager:
        return [what]
    what = what._replace(type=after.type)
    if before.type == after.type and before.number != after.number:
        name = after.type.rpartition(".")[2]
        return [Change(after.name, name, name, "class recreated")]
    old, new = defined_at(before.value), defined_at(after.value)
    if after.object and not is_number(after.value) and (before.type, old) != (after.type, new):
        return [what._replace(form="another")]
    if new.file:
        place, library = f"{new.file}:{new.line}", package_of(new.file)
        what = what._replace(before=old.name, after=new.name)
        return [what._replace(form="recreated", place=place, library=library)]
    if "object" not in what.ways:
        return [what]
    if after.equality:
        return [what._replace(form="unequal", place=after.equality)]
    return [what._replace(form="recreated")]


def static_or_array(pair: Pair, statics: tuple[Static | None, Static | None]) -> Iterator[Cause]:
    """Look at an argument that is static in one of the two builds and an array in the other."""
    before, after = statics
    if before is None and after is not None and is_array(after.name, pair.old.arguments):
        yield Change(after.name, "", static_text(after)[0], "array", ("array", ""))
    if after is None and before is not None and is_array(before.name, pair.new.arguments):
        yield Change(before.name, static_text(before)[0], "", "array", ("", "array"))


def static_remedy(pair: Pair, what: Cause, statics: tuple[Static, Static]) -> Remedy | None:
    """Return what to do about a static argument; None where each value is another program."""
    built, name = pair.new, what.argument
    if what.form == "array":
        return Remedy("array or never", name)
    old, new = statics
    if what.form == "class recreated":
        return Remedy("class once", name, what.after)
    if old.type != new.type and are_equal(old.value, new.value):
        return Remedy("one type", name)
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
    if what.form == "unequal":
        return Remedy("own equality", name)
    if what.form == "recreated" and not number:
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


def tried_dynamic(cause: Cause, builds: Sequence[Built]) -> WithoutEdit | None:
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
