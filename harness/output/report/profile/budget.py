"""`harness.budget(max_compiles=3)`: a decorator and context manager that fails when more is built.

Light, as it stands in programs and tests: what watches JAX is imported when a budget begins.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harness.errors import UsageError
from harness.profiles.budgets.limits import NAMES, Chosen, Pattern, limits_of

if TYPE_CHECKING:
    from harness.profiles.budgets.use import Use, Window
    from harness.profiles.recorded import Recorded

F = TypeVar("F", bound=Callable[..., Any])


class Over(NamedTuple):
    """One limit that was exceeded."""

    limit: str
    """`max_compiles`."""
    allowed: float
    used: float
    functions: tuple[str, ...]
    """What was built: `train.py:loss`."""


class BudgetExceeded(AssertionError):
    """More was built than a budget allows; the text names functions, call sites and causes."""

    def __init__(self, text: str, over: Sequence[Over] = ()) -> None:
        super().__init__(text)
        self.over = tuple(over)


class _Block:
    """One time that a budget is open."""

    window: Window

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __enter__(self) -> None:
        self.window, self._stack = self._budget._begin()

    def __exit__(self, *error: Any) -> None:
        __tracebackhide__ = True
        budget = self._budget
        with self._stack:
            if error[0] is not None or self.window.free:
                return
            judged = self.window.judge(budget.limits, budget._chosen, budget.where, budget.each)
        if judged.uses:
            from harness.output.profile_budgets import exceeded_text  # only where one fails

            raise BudgetExceeded(exceeded_text(judged), list(map(_over, judged.uses)))


class Budget:
    """What :func:`harness.budget` returns: context manager and decorator, as often as you like."""

    def __init__(
        self,
        given: Mapping[str, Any],
        where: str,
        *,
        functions: Any = None,
        each: Any = False,
        warm_up: Any = 0,
    ) -> None:
        limits = limits_of(given, where)
        if not isinstance(each, bool):
            raise UsageError(f"{where}: each is {each!r}; expected True or False.")
        if isinstance(warm_up, bool) or not isinstance(warm_up, int) or warm_up < 0:
            raise UsageError(
                f"{where}: warm_up is {warm_up!r}; expected how many calls are free, 0 or more."
            )
        if not limits and not warm_up:
            raise UsageError(f"{where} limits nothing; give it a limit such as max_compiles=3.")
        if "max_eager" in limits and each:
            raise UsageError(
                f"{where}: max_eager counts all of JAX's functions together: not `each`."
            )
        self.limits = limits or {"max_compiles": 0}
        self.each = each
        self.warm_up = warm_up
        self.where = where
        self._chosen = Chosen(functions, where)
        self._entered = 0
        self._lock = threading.Lock()
        self._open = threading.local()
        self._recording: tuple[Recorded, contextlib.ExitStack] | None = None
        """With a warm-up: goes on between calls, as what was built then explains what is later."""

    def start(self) -> None:
        """Count from here on: the warm-up is over.

        What was built so far in the block is free, and is what later builds are compared with.

        Raises:
            UsageError: outside a `with` block.
        """
        if not self._blocks():
            raise UsageError(
                f"{self.where}: start() was called outside the budget's `with` block. "
                "Write `with harness.budget(...) as budget:` and call budget.start() in it."
            )
        self._blocks()[-1].window.start()

    def _blocks(self) -> list[_Block]:
        """Return the blocks that this thread has open."""
        return self._open.__dict__.setdefault("blocks", [])  # type: ignore[no-any-return]

    def __enter__(self) -> Budget:
        block = _Block(self)
        block.__enter__()
        self._blocks().append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        __tracebackhide__ = True
        self._blocks().pop().__exit__(*error)

    def __call__(self, function: F) -> F:
        """Return the function with this budget for each call of it.

        Raises:
            UsageError: if it is no function, or a generator: its body runs outside the call.
        """
        if inspect.isclass(function) or not callable(function):
            raise UsageError(
                f"{self.where}: a budget decorates a function, not {function!r}. Use it as "
                "`with harness.budget(...):` around anything else."
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{self.where}: {function.__qualname__} is a generator, whose body does not run "
                "while it is called. Put `with harness.budget(...):` around the loop over it."
            )
        guarded: Any
        if inspect.iscoroutinefunction(function):

            async def guarded(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                with _Block(self):
                    return await function(*args, **kwargs)

        else:

            def guarded(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                with _Block(self):
                    return function(*args, **kwargs)

        return functools.wraps(function)(guarded)  # type: ignore[return-value]

    def close(self) -> None:
        """Stop watching, where a warm-up made the budget go on between its calls."""
        with self._lock:
            recording, self._recording = self._recording, None
        if recording is not None:
            recording[1].close()

    def _begin(self) -> tuple[Window, contextlib.ExitStack]:
        # Loaded where one is opened: pytest loads this file in every run.
        from harness.profiles.budgets.use import Window, refuse_inside_a_trace
        from harness.profiles.recorded import Recorded

        refuse_inside_a_trace(self.where)
        with self._lock:
            self._entered += 1
            free = self._entered <= self.warm_up
            profile, stack = self._recording or (None, contextlib.ExitStack())
            if profile is None:
                profile = stack.enter_context(contextlib.closing(Recorded()))
                profile.record(sample_ms=0)
            if self.warm_up and self._recording is None:
                self._recording = profile, stack
                weakref.finalize(self, stack.close)
            return Window(profile, free), contextlib.ExitStack() if self.warm_up else stack


def _over(use: Use) -> Over:
    built = (user.function for user in use.users if user.function.builds)
    return Over(use.name, use.allowed, use.used, tuple(one.label for one in built))


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
    where: str = "",
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
            whole name, or a list of them. A name that no function of the process has is refused
            at the end.
        each: allow as much for each function, rather than for all together.
        warm_up: calls, or entries of the block, that are free at the beginning; without a limit,
            none of the later ones may compile.
        where: what messages call the budget; the file and line of this call without it.

    Raises:
        UsageError: if a limit is not a number, or there is none; at the end if `functions` has
            the name of no function.
    """
    limits = {name: value for name, value in locals().items() if name in NAMES}
    caller = sys._getframe(1)
    place = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
    where = where or f"harness.budget at {place}"
    if misplaced:
        raise UsageError(
            f"{where}: limits are given by name, such as @harness.budget(max_compiles=3); got "
            f"{misplaced[0]!r}."
        )
    return Budget(limits, where, functions=functions, each=each, warm_up=warm_up)
