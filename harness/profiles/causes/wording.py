"""Causes and remedies in sentences, with the user's own names."""

from __future__ import annotations

import re
from pathlib import PurePath

from harness.profiles.causes.aspects import is_operation, is_transformed
from harness.profiles.causes.difference import Difference
from harness.profiles.causes.differences import AN_ARRAY, NOT_GIVEN
from harness.profiles.causes.kinds import Cause
from harness.profiles.causes.remedies import derived_remedy, eager_remedy, remedy, running_library
from harness.profiles.causes.texts import ANOTHER_OBJECT, library_of
from harness.profiles.model import Built, Process
from harness.watch import events

_DERIVED = ", differentiated or batched outside jit"

_EACH = ("shape", "dtype", "weak type", "static value", "sharding", "layout", "device")
"""Causes that are the rule for an operation of JAX's: a program for each of them."""

MENTIONED = 3
"""Differences beyond the first that a sentence tells of."""


def first(built: Built) -> Cause:
    """Return the cause of a function's first build."""
    if built.function.origin != "jax":
        if built.line.derived:
            text = f"First build of `{built.function.name}`{_DERIVED}."
            return Cause("first", sentence=text, remedy=derived_remedy(built))
        return Cause("first", sentence=f"First build of `{built.function.name}`.")
    jitted = built.function.through and not is_operation(built.function)  # as one must
    return Cause(
        "first",
        sentence=f"First build of JAX's `{built.function.name}`{_at(built)}{_alone(built)}.",
        remedy="" if jitted else eager_remedy(built),
    )


def first_itself(built: Built, old: Built) -> Cause:
    """Return the cause of the first build of what was traced only to be transformed."""
    known = f"`{built.function.name}`"
    if built.function.origin == "jax":
        known = f"JAX's {known}{_at(built)}"
    return Cause(
        "first",
        sentence=f"First build of {known} as it is: before it was only traced, to "
        "be differentiated or batched.",
        remedy=eager_remedy(built) if built.function.origin == "jax" else "",
        nearest=old.line.id,
    )


def failed_before(built: Built, old: Built) -> Cause:
    """Return the cause of a build that repeats one that raised."""
    return Cause(
        "failed before",
        before=old.line.error,
        sentence=f"`{built.function.name}` was tried before and raised {old.line.error}: JAX kept "
        "nothing of that.",
        remedy="Mend what raises; JAX does not remember failures.",
        nearest=old.line.id,
    )


def raised(built: Built) -> Cause:
    """Return that a call raised, and that nothing was built: what it was given is wrong, say."""
    text = f"`{built.function.name}` raised {built.line.error}, and nothing was built."
    return Cause("raised", after=built.line.error, sentence=text, remedy="Mend what raises.")


def unexplained(built: Built, old: Built | None = None) -> Cause:
    """Return that the cause is not known."""
    name = built.function.name
    text = f"`{name}` was built again, and nothing that is recorded accounts for it."
    return Cause("unexplained", sentence=text, nearest=old.line.id if old else 0)


def concurrent(built: Built, old: Built) -> Cause:
    """Return the cause of a build that another thread did at the same time."""
    return Cause(
        "concurrent",
        sentence=f"Another thread was building `{built.function.name}` for the same arguments "
        "when this one began.",
        remedy="Call it once before the threads start.",
        nearest=old.line.id,
    )


def evicted(built: Built, old: Built, since: int, limit: int) -> Cause:
    """Return the cause of a build that JAX had, and had no more room for."""
    return Cause(
        "evicted",
        before=f"{since:,} others since",
        after=f"{limit:,} are kept",
        sentence=f"`{built.function.name}` had been built for these arguments, but {since:,} other "
        f"programs were built since, and JAX keeps {limit:,}.",
        remedy="Build fewer different programs: the other causes say which come in large numbers.",
        nearest=old.line.id,
    )


def cleared(built: Built, old: Built, line: events.Cleared, process: Process) -> Cause:
    """Return the cause of a build whose result was thrown away."""
    stack = process.stacks.get(line.stack)
    where = _place(stack.frames[-1]) if stack and stack.frames else ""
    what = {"clear_cache": f"{built.function.name}.clear_cache()", "backends": "the backends"}.get(
        line.what, f"{line.what}()"
    )
    at = f" at {where}" if where else ""
    text = (
        f"`{built.function.name}` had been built for these arguments; `{what}`{at} threw it away."
    )
    if line.what == "backends":
        text = f"`{built.function.name}` had been built, but the backends were cleared{at}."
    return Cause(
        "cache cleared",
        argument=what,
        sentence=text,
        remedy="Clear caches only where memory needs it, not between calls that repeat.",
        nearest=old.line.id,
    )


def differs(built: Built, old: Built, found: list[Difference]) -> Cause:
    """Return the cause of a build that differs from the nearest one.

    Args:
        built: the build.
        old: the earlier build that comes nearest.
        found: what differs, the difference to name first.
    """
    named, *others = found
    if _is_another_use(built, old, found):
        return _another_use(built, old, found)
    alike = [other for other in others if other.kind == named.kind]
    text = _sentence(built, named)
    if alike and all((o.before, o.after) == (named.before, named.after) for o in alike):
        text += f" The same for {_listed(alike)}."
        others = [other for other in others if other.kind != named.kind]
    if others:
        text += f" Also: {'; '.join(_short(other) for other in others[:MENTIONED])}"
        rest = len(others) - MENTIONED
        text += f"; and {rest} more." if rest > 0 else "."
    eager = built.function.origin == "jax"
    return Cause(
        named.kind,
        named.argument,
        named.before,
        named.after,
        text,
        eager_remedy(built) if eager else remedy(built, named),
        old.line.id,
    )


def _is_another_use(built: Built, old: Built, found: list[Difference]) -> bool:
    """Return whether a library's function was called elsewhere with another kind of problem."""
    apart = built.call_site != old.call_site and built.call_site.origin == "program"
    other = any(
        difference.kind == "pytree" and difference.after != ANOTHER_OBJECT for difference in found
    )
    return built.function.origin == "library" and apart and other and len(found) > 1


def _another_use(built: Built, old: Built, found: list[Difference]) -> Cause:
    named = next(difference for difference in found if difference.kind == "pytree")
    library = library_of(built.function.file) or "a library"
    names = list(dict.fromkeys(difference.argument for difference in found))
    listed = _names([named.argument, *(name for name in names if name != named.argument)])
    return Cause(
        named.kind,
        named.argument,
        named.before,
        named.after,
        f"Another use of {library}'s `{built.function.name}`, at {_place(built.call_site)}: what "
        f"it is given there differs in {listed} from what it was given at "
        f"{_place(old.call_site)}.",
        nearest=old.line.id,
    )


def _sentence(built: Built, what: Difference) -> str:
    name, before, after = f"`{what.argument}`", what.before, what.after
    function = f"`{built.function.name}`"
    general = _general(built, what)
    if built.function.origin == "jax":
        alone = _alone(built)
        known = f"JAX's {function}{_at(built)}{alone}"
        comma = "," if alone else ""
        if what.kind == "new function object" and not is_operation(built.function):
            return f"{known}{comma} is a new function object: JAX makes one each time."
        if what.kind == "new function object":
            given = re.sub(r" at [^,]*[/\\]", " at ", built.function.through)
            return f"{known}{comma} was given a new function object: {given}."
        if what.kind in _EACH:
            return (
                f"{known}{comma} is built for each {what.kind}: {name} was {before}, now {after}."
            )
        general = general.replace("The ", "the ", 1) if general.startswith("The ") else general
        return f"{known}{comma} was built again: {general}"
    return general


def _general(built: Built, what: Difference) -> str:
    """Return what differs, of whatever function it is."""
    name, before, after = f"`{what.argument}`", what.before, what.after
    function = f"`{built.function.name}`"
    match what.kind:
        case "new function object":
            where = f" of {_source(built.function)}" if built.function.file else ""
            known = built.function.qualname or built.function.name
            library = library_of(built.function.file)
            whose = f" of {library}" if library and built.function.origin == "library" else ""
            return (
                f"`{known}`{where}{whose and f' ({library})'} is a new function object; JAX keeps "
                "what it builds per object, not per source line."
            )
        case "static value":
            if AN_ARRAY in (before, after):
                ways = [
                    "an array" if text == AN_ARRAY else f"the static {text}"
                    for text in (before, after)
                ]
                return f"{name} was {ways[0]}, now it is {ways[1]}."
            if what.file:
                return f"{name} is static, and is {_made_anew(what)}."
            return f"{name} is static and was {before}, now {after}: every value is built anew."
        case "shape":
            return f"The shape of {name} was {before}, now {after}{_axes(before, after)}."
        case "dtype":
            return f"The dtype of {name} was {before}, now {after}."
        case "weak type":
            return f"{name} was {before}, now {after}: JAX tells the two types apart."
        case "pytree" if after == ANOTHER_OBJECT:
            return (
                f"The structure of {name} holds `{before}`, whose text is the same as before, but "
                "which is another object."
            )
        case "pytree":
            return (
                f"The structure of the arguments changed at {name}: {before} before, {after} now."
            )
        case "committed":
            if before == "not committed":
                return (
                    f"{name} is now committed ({after}); before it was not, and JAX could move it."
                )
            return f"{name} is no longer committed; before it was ({before})."
        case "device":
            return f"{name} is committed to {after}, before to {before}."
        case "configuration":
            return f"{name} of JAX's configuration or context was {before}, now {after}."
        case "donation":
            return f"{function} was jitted to donate {before}, now {after}."
        case "jit options":
            ways = [
                f"with {text}" if text != NOT_GIVEN else "without it" for text in (before, after)
            ]
            return f"{name} of jax.jit: {function} was jitted {ways[0]}, now {ways[1]}."
        case "ahead of time":
            return f"{function} was built ahead of time with {name} {after}, before {before}."
        case _:
            return f"The {what.kind} of {name} was {before}, now {after}."


def _made_anew(what: Difference) -> str:
    """Return what a static function is that differs from the earlier one only as an object."""
    library = library_of(what.file)
    place = f"{PurePath(what.file).name}:{what.line}{f' of {library}' if library else ''}"
    known = what.after.partition(" (")[0]
    if what.type.endswith("PjitFunction"):
        return f"a jitted function made anew each time: `{known}` at {place}"
    if what.type == "function":
        return f"a function made anew each time: `{known}` at {place}"
    return f"another object each time: a {what.type} of `{known}` at {place}"


def _short(what: Difference) -> str:
    if what.after == ANOTHER_OBJECT:
        return f"pytree of `{what.argument}`: another object, `{what.before}`"
    return f"{what.kind} of `{what.argument}`: {what.before} → {what.after}"


def _listed(found: list[Difference]) -> str:
    return _names([other.argument for other in found])


def _names(found: list[str]) -> str:
    names = [f"`{name}`" for name in found[:MENTIONED]]
    rest = len(found) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _axes(before: str, after: str) -> str:
    """Say which axis changed, where the number of axes did not."""
    one, other = (text.strip("()").split(", ") for text in (before, after))
    if len(one) != len(other) or len(one) < 2:
        return ""
    changed = [str(n) for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    return f" (ax{'i' if len(changed) == 1 else 'e'}s {', '.join(changed)})"


def _source(function: events.Function) -> str:
    return f"{PurePath(function.file).name}:{function.line}"


def _place(frame: events.Frame) -> str:
    return f"{PurePath(frame.file).name}:{frame.line}"


def _at(built: Built) -> str:
    if not built.call_site.file:
        return ""
    library = running_library(built)
    return f"{f' by {library}' if library else ''} at {_place(built.call_site)}"


def _alone(built: Built) -> str:
    if is_transformed(built):
        return _DERIVED
    return ", run by itself" if built.times("compile") else ""
