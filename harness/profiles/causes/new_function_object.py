"""The function is another object of the same source line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from harness.profiles.causes import another_program
from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import FILTER_JIT, alone, library_remedy
from harness.profiles.model import Built
from harness.profiles.names import package_of
from harness.watch.events import Static

PASSED = "and pass what changes in it as an argument"


def _function(pair: Pair, item: None) -> Iterable[Change]:
    before, after = (f"object {built.line.object}" for built in pair)
    # One that is jitted once would return the result of the first one's constants for all.
    several = len(pair.new.process.variants.get(pair.new.alike, ())) > 1
    changed = pair.old.line.program != pair.new.line.program or several
    yield Change(pair.new.function.name, before, after, "changed" * changed)


def _traced(pair: Pair, statics: tuple[Static, Static]) -> Iterable[Change] | None:
    """What JAX traced of a function is a parameter of its own operations."""
    before, after = statics
    if not pair.new.eager or not ("Jaxpr" in after.type or "{ lambda" in after.value):
        return None
    return [Change(after.name, f"object {before.object}", f"object {after.object}")]


def _sentence(built: Built, what: Change) -> str:
    function = built.function
    where = f" of {PurePath(function.file).name}:{function.line}" if function.file else ""
    library = package_of(function.file) if function.origin == "library" else ""
    return (
        f"`{function.qualname or function.name}`{where}{f' ({library})' if library else ''} is a "
        "new function object; JAX keeps what it builds per object, not per source line."
    )


def _of_jax(built: Built, known: str) -> str:
    comma = "," if alone(built) else ""
    if not built.operation:
        return f"{known}{comma} is a new function object: JAX makes one each time."
    given = re.sub(r" at [^,]*[/\\]", " at ", built.function.through)
    return f"{known}{comma} was given a new function object: {given}."


def _remedy(built: Built, what: Change) -> str:
    if built.function.origin == "library":
        if built.function.through == FILTER_JIT:
            passed = f", {PASSED}" * bool(what.type)
            return f"Apply eqx.filter_jit once, outside the loop or function{passed}."
        held = " What it closes over differs: pass that as an argument." * bool(what.type)
        remedy = library_remedy(built, package_of(built.function.file))
        return remedy + held if remedy else ""
    if "partial" in built.function.through:
        return (
            "Make the partial and jit it once, outside the loop or function, or pass what it binds "
            "as arguments."
        )
    if "method" in built.function.through:
        return (
            "Each access to a method makes a new object: jit the function itself once, and pass "
            "the instance as an argument (a pytree, or static)."
        )
    jitted = " and jit" * (built.line.kind != "trace")  # as `jax.eval_shape` only traces
    passed = f", {PASSED}" * bool(what.type or not jitted)
    return f"Define{jitted} it once, outside the loop or function that makes it{passed}."


CAUSE = ChangeKind(
    name="new function object",
    several="each time another function object of the same source line",
    looks={"function": _function, "statics": _traced},
    sentence=_sentence,
    of_jax=_of_jax,
    remedy=_remedy,
    instead=another_program.of,
    foremost=True,
)
