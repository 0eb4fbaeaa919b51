"""`harness.budget(max_compiles=3)`: a decorator and context manager, from what a user gives."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from harness.errors import UsageError
from harness.profiles.budgets.guard import Budget, BudgetExceeded
from harness.profiles.budgets.limits import Limits, Pattern, limits_of


def budget(
    *misplaced: Any,
    max_compiles: int | None = None,
    max_traces: int | None = None,
    max_lowers: int | None = None,
    max_builds: int | None = None,
    max_eager: int | None = None,
    max_unexplained: int | None = None,
    max_compile_seconds: float | None = None,
    functions: Pattern | Sequence[Pattern] | None = None,
    each: bool = False,
    warm_up: int = 0,
) -> Budget:
    """Fail with :class:`BudgetExceeded` when more is built than allowed: for tests and CI.

    ::

        with harness.budget(max_compiles=3):       # in the block, all threads
            train()

        @harness.budget(warm_up=2)                 # from the third call on nothing is compiled
        def train_step(state, batch): ...

        with harness.budget(max_compiles=0) as budget:
            step(state, batch)                     # warm-up
            budget.start()                         # counted from here on
            for batch in batches: ...

    It is judged at the end of the block or call, and not where the block raises by itself. What
    counts is every function that was jitted, those of libraries included; JAX's own functions,
    compiled when they are called outside `jax.jit`, count for `max_eager` alone. A function that is
    called inside another jitted one is compiled with it, and counts its traces only. A budget is an
    upper bound: what was built before the block is not built again in it.

    JAX is watched while the block or call runs, and with `warm_up` from the first call on until
    `close()`, or until nothing holds the budget any more. Calls that build nothing are not slower;
    to begin and to end takes about a millisecond.

    Args:
        misplaced: nothing; `@harness.budget` needs its limits in parentheses.
        max_compiles: executables asked for, whether XLA compiled them or the persistent cache had
            them, so that the count does not depend on the cache.
        max_traces: how often functions are traced, alone or inside others.
        max_lowers: how often they are lowered.
        max_builds: calls (or `.trace()`, `.lower()`, `.compile()`) in which any of that was done.
        max_eager: executables of JAX's own functions: `jnp.ones`, `x + 1` outside `jax.jit`.
        max_unexplained: builds whose cause the profile does not know.
        max_compile_seconds: seconds in compiling and loading; the one limit that depends on the
            machine.
        functions: count these only: a name (`loss`, `train.py:loss`), a regular expression of the
            whole name, or a list of them.
        each: allow as much for each function, rather than for all together.
        warm_up: calls, or entries of the block, that are free at the beginning; without a limit,
            none of the later ones may compile.

    Raises:
        UsageError: if a limit is not a number, or there is none.
    """
    caller = sys._getframe(1)
    place = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
    where = f"harness.budget at {place}"
    if misplaced:
        raise UsageError(
            f"{where}: limits are given by name, such as @harness.budget(max_compiles=3); got "
            f"{misplaced[0]!r}."
        )
    given = {
        "max_compiles": max_compiles,
        "max_traces": max_traces,
        "max_lowers": max_lowers,
        "max_builds": max_builds,
        "max_eager": max_eager,
        "max_unexplained": max_unexplained,
        "max_compile_seconds": max_compile_seconds,
    }
    return made(given, where, functions=functions, each=each, warm_up=warm_up)


def made(
    given: dict[str, Any],
    where: str,
    *,
    functions: Any = None,
    each: Any = False,
    warm_up: Any = 0,
    exceeded: type[BudgetExceeded] = BudgetExceeded,
) -> Budget:
    """Return a budget of what a user gave, checked.

    Raises:
        UsageError: if any of it is not what is expected.
    """
    limits = limits_of(given, where)
    if not isinstance(each, bool):
        raise UsageError(f"{where}: each is {each!r}; expected True or False.")
    if isinstance(warm_up, bool) or not isinstance(warm_up, int) or warm_up < 0:
        raise UsageError(
            f"{where}: warm_up is {warm_up!r}; expected how many calls are free, 0 or more."
        )
    if not limits:
        if not warm_up:
            raise UsageError(f"{where} limits nothing; give it a limit such as max_compiles=3.")
        limits = Limits(max_compiles=0)
    if limits.max_eager is not None and each:
        raise UsageError(f"{where}: max_eager counts all of JAX's functions together: not `each`.")
    if functions is not None and not isinstance(functions, str | re.Pattern):
        functions = list(functions) if isinstance(functions, list | tuple | set) else functions
    return Budget(limits, functions, each, warm_up, where, exceeded)
