"""The words of causes: a template for each code, of a clause as it follows a colon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TypeAlias

from harness.profiles.causes.again import is_transformed, running_library
from harness.profiles.causes.cause import NAMED, Cause, Several, Way
from harness.profiles.causes.values import place_text
from harness.profiles.model import Built
from harness.profiles.names import FILTER_JIT, package_of, wrappers
from harness.records.units import some

_WAYS: Mapping[Way, str] = {
    "": "{}",
    "python": "a Python {}",
    "weak": "a weakly typed {}",
    "array": "an array",
    "absent": "not given",
    "given": "given",
    "position": "by position",
    "keyword": "by keyword",
    "object": "{}",
    "rest": "{} (the rest differs)",
    "uncommitted": "not committed",
    "usual": "the usual order",
    "nothing": "nothing",
}


def value_text(text: str, way: Way) -> str:
    """Return a value as it is read in a sentence."""
    if way == "fixed":
        return f"an {text}" if text[:1] in "aeio" else f"a {text}"
    return _WAYS[way].format(text)


Clause: TypeAlias = "str | Callable[[Cause, Built], str]"
"""A template, or what makes the whole text."""


def _axes(cause: Cause) -> str:
    one, other = cause.sizes or ((), ())
    if len(one) != len(other) or len(one) < 2:
        return ""
    pairs = enumerate(zip(one, other, strict=True))
    axes = [str(axis) for axis, pair in pairs if pair[0] != pair[1]]
    return f" (ax{'i' if len(axes) == 1 else 'e'}s {', '.join(axes)})"


def _commitment(cause: Cause, built: Built) -> str:
    name = f"`{cause.argument}`"
    if cause.ways[0] == "uncommitted":
        return f"{name} is now committed ({cause.after}); before it was not, and JAX could move it"
    return f"{name} is no longer committed; before it was ({cause.before})"


def _options(cause: Cause, built: Built) -> str:
    before, after = (
        "without it" if way == "absent" else f"with {text}"
        for text, way in zip((cause.before, cause.after), cause.ways, strict=True)
    )
    name = built.function.name
    return f"`{cause.argument}` of jax.jit: `{name}` was jitted {before}, now {after}"


def _static_or_array(cause: Cause, built: Built) -> str:
    before, after = (
        "an array" if way == "array" else f"the static {text}"
        for text, way in zip((cause.before, cause.after), cause.ways, strict=True)
    )
    return f"`{cause.argument}` was {before}, now it is {after}"


def _recreated_static(cause: Cause, built: Built) -> str:
    kind, place = cause.type, f"{PurePath(cause.place).name}{_of(cause.library)}"
    if not cause.place:
        what = f"another `{kind.rpartition('.')[2]}` each time"
    elif kind == "function" or kind.endswith("PjitFunction"):
        jitted = "" if kind == "function" else "jitted "
        what = f"a {jitted}function recreated each time: `{cause.after}` at {place}"
    else:
        what = f"another object each time: a {kind} of `{cause.after}` at {place}"
    return f"`{cause.argument}` is static, and is {what}"


def _unequal_static(cause: Cause, built: Built) -> str:
    file, _, line = cause.place.rpartition(":")
    return (
        f"`{cause.argument}` is static, and its `{cause.type.rpartition('.')[2]}` equals no "
        f"earlier one by __eq__ ({PurePath(file).name}:{line}) or __hash__"
    )


def _of(library: str) -> str:
    return f" of {library}" if library else ""


def _function_object(cause: Cause, built: Built) -> str:
    function = built.function
    where = f" of {PurePath(function.file).name}:{function.line}" if function.file else ""
    library = package_of(function.file) if function.origin == "library" else ""
    return (
        f"`{function.qualname or function.name}`{where}{f' ({library})' if library else ''} is a "
        "new function object; JAX stores what it builds per object, not per source line"
    )


def _structure(cause: Cause, built: Built) -> str:
    before, after = (value_text(*one) for one in _both(cause, built))
    name = f"`{cause.argument}`"
    return f"the structure of the arguments changed at {name}: {before} before, {after} now"


def _both(cause: Cause, built: Built) -> list[tuple[str, Way]]:
    """Return both values; what `eqx.filter_jit` takes as static is a value, and no array."""
    filtered = FILTER_JIT in wrappers(built.function)
    pairs = zip((cause.before, cause.after), cause.ways, strict=True)
    return [("a value", "") if filtered and way == "array" else (text, way) for text, way in pairs]


def _use(cause: Cause, built: Built) -> str:
    return (
        f"another use of {cause.library or 'a library'}'s `{built.function.name}`, at "
        f"{place_text(built.call_site)}: what it is given there differs in "
        f"{names_text(cause.alike)} from what it was given at {cause.place}"
    )


def _cleared(cause: Cause, built: Built) -> str:
    at = f" at {cause.place}" if cause.place else ""
    if cause.form == "backends":
        return f"`{built.function.name}` had been built, but the backends were cleared{at}"
    return f"`{cause.argument}`{at} threw it away"


CLAUSES: Mapping[tuple[str, str], Clause] = {
    ("first", ""): "first build of `{name}`",
    ("first", "derived"): "first build of `{name}`, differentiated or batched outside jit",
    ("first", "as it is"): (
        "first build of `{name}` as it is: before it was only traced, to be differentiated or "
        "batched"
    ),
    ("raised", ""): "`{name}` raised {after}, and nothing was built",
    ("failed before", ""): "`{name}` was tried before and raised {before}: JAX stored nothing then",
    ("another program", ""): "it is another program than before, of another `{argument}`",
    ("new function object", ""): _function_object,
    ("new function object", "changed"): _function_object,
    ("pytree", ""): _structure,
    ("pytree", "other"): _structure,
    ("pytree", "static"): _structure,
    ("pytree", "way"): _structure,
    ("pytree", "static way"): _structure,
    ("pytree", "object"): (
        "the structure of `{argument}` holds `{before}`, whose text is the same as before, but "
        "which is another object"
    ),
    ("pytree", "class"): "`{argument}` was of the class {before}, now of {after}",
    ("pytree", "class recreated"): (
        "`{argument}` is of another class of the name {after} than before"
    ),
    ("pytree", "inside"): ("`{argument}` holds an object of {after} where it held one of {before}"),
    ("pytree", "inside recreated"): (
        "`{argument}` holds an object of another class of the name {after} than before"
    ),
    ("pytree", "dictionary"): (
        "`{argument}` is another kind of dictionary: {before} before, {after} now"
    ),
    ("pytree", "numbers"): "fixed fields of `{type}` in `{argument}` were {before}, now {after}",
    ("pytree", "fields"): "fixed fields of `{type}` in `{argument}` were {before}, now {after}",
    ("pytree", "fields and more"): (
        "fixed fields of `{type}` in `{argument}` were {before}, now {after}; more of it differs "
        "too"
    ),
    ("pytree", "use"): _use,
    ("dtype", ""): "the dtype of `{argument}` was {before}, now {after}",
    ("shape", ""): "the shape of `{argument}` was {before}, now {after}{axes}",
    ("sharding", ""): "the sharding of `{argument}` was {before}, now {after}",
    ("weak type", ""): ("`{argument}` was {before}, now {after}: for JAX these are two types"),
    ("unused argument", ""): (
        "`{name}` does not use `{argument}`, which was of the type {before}, now {after}"
    ),
    ("static value", ""): (
        "`{argument}` is static and was {before}, now {after}: JAX builds for every value"
    ),
    ("static value", "another"): (
        "`{argument}` is static and was {before}, now {after}: JAX builds for every value"
    ),
    ("static value", "array"): _static_or_array,
    ("static value", "class recreated"): (
        "`{argument}` is static, and of another class of the name {after} than before"
    ),
    ("static value", "recreated"): _recreated_static,
    ("static value", "unequal"): _unequal_static,
    ("committed", ""): _commitment,
    ("device", ""): "`{argument}` is committed to {after}, before to {before}",
    ("layout", ""): "the layout of `{argument}` was {before}, now {after}",
    ("configuration", ""): (
        "`{argument}` of JAX's configuration or context was {before}, now {after}"
    ),
    ("donation", ""): "`{name}` was jitted to donate {before}, now {after}",
    ("ahead of time", ""): (
        "`{name}` was built ahead of time with `{argument}` {after}, before {before}"
    ),
    ("jit options", ""): _options,
    ("cache cleared", ""): _cleared,
    ("cache cleared", "backends"): _cleared,
    ("concurrent", ""): (
        "another thread was building `{name}` for the same arguments when this one began"
    ),
    ("evicted", ""): "{before} other programs were built since, and JAX stores {after}",
    ("unexplained", ""): "nothing that is recorded explains it",
}
"""By kind and form of a cause. A form without a row has that of its kind."""

_ANY = "{kind} of `{argument}` was {before}, now {after}"
"""Of a kind without words of its own."""

SEVERAL: Mapping[str, str] = {
    "another program": "each time another program, of another {what}",
    "new function object": "each time another function object of the same source line",
    "pytree": "{what} had another structure each time; once, {clause}",
    "dtype": "{what} had {n} dtypes",
    "shape": "{what} had {n} shapes",
    "unused argument": "{what} is not used, and had {n} types",
    "static value": "{what} is static and took {n} values",
    "configuration": "{what} of JAX's configuration or context had {n} values",
    "cache cleared": "JAX's caches were cleared in between; once, {clause}",
}
"""Of many builds of a function with one cause: `{what}` is the argument, `{n}` the number of its
values, `{clause}` what one such build is about."""


def clause(cause: Cause, built: Built) -> str:
    """Return a cause as it follows a colon."""
    made = CLAUSES.get((cause.kind, cause.form)) or CLAUSES.get((cause.kind, ""), _ANY)
    if not isinstance(made, str):
        return made(cause, built)
    numbers = cause.kind == "evicted"
    before, after = (
        f"{int(value):,}" if numbers else value_text(value, way)
        for value, way in zip((cause.before, cause.after), cause.ways, strict=True)
    )
    return made.format(
        kind=cause.kind,
        argument=cause.argument,
        before=before,
        after=after,
        name=built.function.name,
        type=cause.type,
        place=cause.place,
        axes=_axes(cause),
    )


def sentence(cause: Cause, built: Built) -> str:
    """Return a cause in a sentence, with what else differs, and who called a function of JAX's."""
    text = clause(cause, built)
    text = f"{_of_jax(built)}: {text}." if built.eager else f"{text[0].upper()}{text[1:]}."
    if cause.alike.number and cause.form != "use":
        text += f" The same for {names_text(cause.alike)}."
    if cause.also.number:
        named = "; ".join(_short(one, built) for one in cause.also.first)
        rest = cause.also.number - len(cause.also.first)
        text += f" Also: {named}{f'; and {rest} more' if rest else ''}."
    return text


def _of_jax(built: Built) -> str:
    """Return JAX's `add` by optax at fit.py:8, run by itself."""
    name = f"JAX's `{built.function.name}`"
    if built.call_site.file:
        library = running_library(built)
        name += f"{f' by {library}' if library else ''} at {place_text(built.call_site)}"
    if is_transformed(built):
        return f"{name}, differentiated or batched outside jit"
    return f"{name}, run by itself" if built.times("compile") else name


def _short(what: Cause, built: Built) -> str:
    if what.form == "object":
        return f"{what.kind} of `{what.argument}`: another object, `{what.before}`"
    before, after = (value_text(*one) for one in _both(what, built))
    return f"{what.kind} of `{what.argument}`: {before} → {after}"


def names_text(names: Several) -> str:
    """Return the first names, and how many more there are."""
    return some([f"`{one}`" for one in names.first], NAMED, names.number)


def several_text(cause: Cause, built: Built, builds: int, values: int) -> str:
    """Return why a function was built so many times for one kind of cause, after a colon."""
    text = SEVERAL.get(cause.kind, "") if cause.form != "class recreated" else ""
    if not text or builds < 2 or cause.recreated or (values < 2 and "{n}" in text):
        return clause(cause, built)
    what = f"`{cause.argument}`" if cause.argument else "its arguments"
    return text.format(what=what, n=values, clause=clause(cause, built))


def cause_text(cause: Cause, built: Built, before: bool = True) -> str:
    """Return a cause as it follows a colon, in a line of its own.

    Args:
        cause: of a build.
        built: the build.
        before: whether it was recorded what was built earlier.
    """
    if cause.kind != "first":
        return clause(cause, built)
    if before:
        return "its first build"
    return (
        "its first build since the budget began; open the budget before the warm-up to see what "
        "changed"
    )
