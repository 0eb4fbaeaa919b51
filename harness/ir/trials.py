"""Remedies of a slow compile, tried: the program is built with each of them, and as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import jax

from harness.program.compiler.inside import Remedy
from harness.program.compiler.remedies import TriableRemedy
from harness.records.failure import describe
from harness.watch.jax_names import options_of

ROUNDS = 6
"""Builds of each; see :attr:`harness.program.compiler.inside.Remedy.is_noise`."""

MOST_S = 60.0
"""After so many seconds no other round begins; of a longer compile the first one counts too."""


def try_remedies(
    traced: Any, found: Sequence[TriableRemedy], sharding: Any, first_s: float
) -> Iterator[str]:
    """Lower and compile a program with each remedy and as it is, in turn, and note the seconds.

    What is about to be built is yielded before it is: it may not come to its end.

    Args:
        traced: the program as it is, a `jax.stages.Traced`.
        found: its remedies, each with a program of its own.
        sharding: of the arguments; None for that of the process's device.
        first_s: what lower and compile took already.
    """
    programs: list[tuple[Remedy, Any]] = []
    for remedy, variant in found:
        yield f"remedy: {remedy.advice}"
        assert variant is not None
        try:
            made = variant(traced.jaxpr)
            if isinstance(made, str):
                remedy.untried = made
                continue
            programs.append((remedy, traced_as(traced, *made, sharding)))
        except Exception as error:  # whatever JAX says of it
            remedy.untried = f"JAX does not trace it: {describe(error)}"
    before = [first_s] if first_s > MOST_S else []
    start = time.monotonic()
    for turn in range(1, ROUNDS + 1):
        if not programs or (turn > 1 and time.monotonic() - start > MOST_S):
            return
        if len(before) < turn:
            yield f"as it is, for the {turn}. time"
            before.append(_took_s(traced))
        for remedy, other in [*programs]:
            yield f"remedy, for the {turn}. time: {remedy.advice}"
            try:
                remedy.after_s.append(_took_s(other))
            except Exception as error:  # whatever a back end says of it
                remedy.untried = f"it cannot be compiled: {describe(error)}"
                programs.remove((remedy, other))
                continue
            remedy.untried, remedy.before_s = "", before[:]
            remedy.saved_s = median(before) - median(remedy.after_s)


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
