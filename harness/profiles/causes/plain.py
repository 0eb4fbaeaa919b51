"""Causes that are no difference: first builds, failures, and what nothing accounts for."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, Kind
from harness.profiles.causes.words import DERIVED, alone, eager_remedy, jax_function
from harness.profiles.model import Built

FIRST = Kind(name="first", blameless=True)
RAISED = Kind(name="raised", again="{name} raised {after} {times}, and nothing was built")
FAILED_BEFORE = Kind(name="failed before")
UNEXPLAINED = Kind(name="unexplained")


def first(built: Built) -> Cause:
    """Return the cause of a function's first build."""
    name = f"First build of `{built.function.name}`"
    if built.eager:
        text = f"First build of {jax_function(built)}{alone(built)}."
        jitted = built.function.through and not built.operation  # as one must
        return Cause(FIRST.name, sentence=text, remedy="" if jitted else eager_remedy(built))
    if not built.line.derived:
        return Cause(FIRST.name, sentence=f"{name}.")
    remedy = "Jit the whole function that is differentiated or batched, e.g. jax.jit(jax.grad(f))."
    if built.function.origin == "library":
        remedy = ""
    return Cause(FIRST.name, sentence=f"{name}{DERIVED}.", remedy=remedy)


def first_as_it_is(built: Built, old: Built) -> Cause:
    """Return the cause of the first build of what was traced only to be transformed."""
    known = jax_function(built) if built.eager else f"`{built.function.name}`"
    return Cause(
        FIRST.name,
        sentence=f"First build of {known} as it is: before it was only traced, to "
        "be differentiated or batched.",
        remedy=eager_remedy(built) if built.eager else "",
        nearest=old.line.id,
    )


def raised(built: Built) -> Cause:
    """Return the cause where a call raised, for what it was given, say."""
    text = f"`{built.function.name}` raised {built.line.error}, and nothing was built."
    return Cause(RAISED.name, after=built.line.error, sentence=text, remedy="Mend what raises.")


def failed_before(built: Built, old: Built) -> Cause:
    """Return the cause of a build that repeats `old`, which raised."""
    return Cause(
        FAILED_BEFORE.name,
        before=old.line.error,
        sentence=f"`{built.function.name}` was tried before and raised {old.line.error}: JAX kept "
        "nothing of that.",
        remedy="Mend what raises; JAX does not remember failures.",
        nearest=old.line.id,
    )


def unexplained(built: Built, old: Built | None = None) -> Cause:
    """Return that nothing that is recorded accounts for a build; nothing is guessed."""
    text = f"`{built.function.name}` was built again, and nothing that is recorded accounts for it."
    return Cause(UNEXPLAINED.name, sentence=text, nearest=old.line.id if old else 0)
