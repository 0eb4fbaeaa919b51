"""Another function object, and another way in which a function was jitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.profiles.causes.cause import Cause, Change, Difference, Pair, Remedy, caused
from harness.profiles.causes.outside import library_remedy
from harness.profiles.causes.values import setting_change
from harness.profiles.names import FILTER_JIT, package_of, wrappers
from harness.watch.events import Static

_KINDS = ("new function object", "pytree")
"""What a function that is recreated for another program differs in."""

_DONATED = ("donated", "donate_argnames", "donate_argnums")
"""Of one thing; the first that differs is named."""


def function_objects(pair: Pair, item: None) -> Iterable[Change]:
    """Look at the function object; the form is `changed` where what it closes over differs."""
    before, after = (str(built.line.object) for built in pair)
    # One that is jitted once would return the result of the first one's constants for all.
    name, form = pair.new.function.name, "changed" if pair.is_changed else ""
    yield Change(name, before, after, form, ("object", "object"))


def traced_for(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Change] | None:
    """Look at what JAX traced of a function: a parameter of its own operations."""
    before, after = statics
    if not pair.new.eager or not ("Jaxpr" in after.type or "{ lambda" in after.value):
        return None
    objects = str(before.object), str(after.object)
    return [Change(after.name, *objects, ways=("object", "object"))]


def recreated_remedy(pair: Pair, what: Change, item: None) -> Remedy | None:
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
    recreated = [
        one for one in differences if one.kind.name == _KINDS[0] or one.change.form == "recreated"
    ]
    others = [one for one in differences if one not in recreated]
    if not recreated or any(one.kind.name not in _KINDS for one in others):
        return None
    if new.eager or not old.work or new.process.works.get(new.work) != new.line.id:
        return None
    what = recreated[0].change
    own = new.function.origin == "program" and not others
    remedy = Remedy("pass what differs", what.argument) if own else None
    change = Change(what.argument, what.before, what.after, ways=what.ways)
    return caused("another program", change, remedy=remedy, nearest=old.line.id)


def chosen_statics(pair: Pair, chosen: tuple[dict[str, str], dict[str, str]]) -> Iterator[Change]:
    """Look at which arguments are static."""
    names = any("static_argnames" in jit for jit in chosen)
    name = "static_argnames" if names else "static_argnums"
    before, after = (jit.get(name, "()") for jit in chosen)
    yield Change(name, before, after)


_Option = tuple[str, str | None, str | None]


def donation(pair: Pair, option: _Option) -> Iterable[Change] | None:
    """Look at which arguments are donated."""
    name, before, after = option
    if name not in _DONATED:
        return None
    old, new = (built.settings.jit if built.settings else {} for built in pair)
    if name != next(one for one in _DONATED if old.get(one) != new.get(one)):
        return ()
    ways = ("" if before else "nothing", "" if after else "nothing")
    return [Change(after or before or "", before or "", after or "", ways=ways)]  # type: ignore[arg-type]


def ahead_of_time(pair: Pair, option: _Option) -> list[Change] | None:
    """Look at what a program was built with ahead of time."""
    compiled = pair.new.line.kind == "compile" and option[0] == "compiler_options"
    return [setting_change(*option)] if option[0] == "lowering_platforms" or compiled else None


def options_remedy(pair: Pair, what: Change, item: _Option) -> Remedy | None:
    """Return what to do about a function that is jitted in several ways."""
    built = pair.new
    if built.function.origin == "library":
        return library_remedy(built, package_of(built.function.file))
    return Remedy("one set of options", built.function.name)


def ahead_of_time_remedy(pair: Pair, what: Change, item: _Option) -> Remedy:
    """Return what to do about a program that is built in several ways ahead of time."""
    return Remedy("ahead of time", what.argument, pair.new.function.name)
