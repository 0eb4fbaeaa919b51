"""The first build of a function."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.causes.words import DERIVED, alone, eager_remedy, jax_function
from harness.profiles.model import Built

CAUSE = Kind(name="first", blameless=True)


def of(built: Built) -> Cause:
    """Return the cause of a function's first build."""
    name = f"First build of `{built.function.name}`"
    if built.eager:
        text = f"First build of {jax_function(built)}{alone(built)}."
        jitted = built.function.through and not built.operation  # as one must
        return Cause("first", sentence=text, remedy="" if jitted else eager_remedy(built))
    if not built.line.derived:
        return Cause("first", sentence=f"{name}.")
    remedy = "Jit the whole function that is differentiated or batched, e.g. jax.jit(jax.grad(f))."
    if built.function.origin == "library":
        remedy = ""
    return Cause("first", sentence=f"{name}{DERIVED}.", remedy=remedy)


def as_it_is(built: Built, old: Built) -> Cause:
    """Return the cause of the first build of what was traced only to be transformed."""
    known = jax_function(built) if built.eager else f"`{built.function.name}`"
    return Cause(
        "first",
        sentence=f"First build of {known} as it is: before it was only traced, to "
        "be differentiated or batched.",
        remedy=eager_remedy(built) if built.eager else "",
        nearest=old.line.id,
    )
