"""Remedies of a slow compile, tried: the program is built with each of them, and as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from harness.jaxhooks.jax_names import options_of
from harness.program.compiler.causes import CompileCause, RemedyTrial
from harness.program.compiler.rolled import rolled
from harness.program.compiler.variants import VARIANTS
from harness.records.failure import describe

ROUNDS = 6
"""Builds of each; see :attr:`harness.program.compiler.causes.RemedyTrial.is_noise`."""

MOST_S = 60.0
"""After so many seconds no other round begins; of a longer compile the first one counts too."""

STOPPED = "stopped"
"""A trial did not come to its end, or has not begun."""


def trial_of(
    cause: CompileCause, causes: Sequence[CompileCause], is_spread: bool
) -> RemedyTrial | None:
    """Return what becomes of the trial of one cause among others; None where it has no program.

    `is_spread` says that the program is of several devices, where nothing is tried.
    """
    if cause.kind not in VARIANTS:
        return None
    if not cause.is_same:
        return RemedyTrial(untried="other shapes")
    loops = [one for one in causes if VARIANTS.get(one.kind) is rolled and one.is_same]
    if cause in loops[1:]:
        return RemedyTrial(untried="rolled before")
    return RemedyTrial(untried="several devices" if is_spread else STOPPED)


def try_remedies(
    traced: Any, causes: Sequence[CompileCause], sharding: Any, first_s: float
) -> Iterator[str]:
    """Lower and compile a program with each remedy and as it is, in turn, and note the seconds.

    What is about to be built is yielded before it is: it may not come to its end.

    Args:
        traced: the program as it is, a `jax.stages.Traced`.
        causes: causes with a trial, which is filled in.
        sharding: of the arguments; None for that of the process's device.
        first_s: what lower and compile took already.
    """
    programs: list[tuple[CompileCause, RemedyTrial, Any]] = []
    for cause in causes:
        yield f"remedy of {cause.kind}"
        cause.trial = trial = RemedyTrial(untried=STOPPED)
        try:
            made = VARIANTS[cause.kind](traced.jaxpr)
            if isinstance(made, str):
                trial.untried = made
                continue
            programs.append((cause, trial, traced_as(traced, *made, sharding)))
        except Exception as error:  # whatever JAX says of it
            trial.untried, trial.detail = "not traced", describe(error)
    before = [first_s] if first_s > MOST_S else []
    start = time.monotonic()
    for turn in range(1, ROUNDS + 1):
        if not programs or (turn > 1 and time.monotonic() - start > MOST_S):
            return
        if len(before) < turn:
            yield f"as it is, for the {turn}. time"
            before.append(_took_s(traced))
        for one in [*programs]:
            cause, trial, other = one
            yield f"remedy of {cause.kind}, for the {turn}. time"
            try:
                trial.after_s.append(_took_s(other))
            except Exception as error:  # whatever a back end says of it
                trial.untried, trial.detail = "not compiled", describe(error)
                programs.remove(one)
                continue
            trial.untried, trial.before_s = "", before[:]


def traced_as(traced: Any, program: Any, shapes: Sequence[Any], sharding: Any) -> Any:
    """Trace another program, to be compiled with the compiler options of a first one."""
    options = dict(options_of(traced).get("compiler_options_kvs", ()))
    given = [jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=sharding) for one in shapes]
    return jax.jit(program, compiler_options=options).trace(*given)


def _took_s(traced: Any) -> float:
    """Return what lower and compile take, from nothing in memory."""
    jax.clear_caches()
    start = time.perf_counter()
    traced.lower().compile()
    return time.perf_counter() - start
