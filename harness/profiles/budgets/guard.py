"""What `harness.budget(max_compiles=3)` returns: it fails when more is built."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harness.errors import UsageError
from harness.profiles.budgets.limits import Limits, Pattern, matcher

if TYPE_CHECKING:
    from harness.profiles.budgets.judging import Use
    from harness.profiles.budgets.recording import Recording, Window

F = TypeVar("F", bound=Callable[..., Any])


class Over(NamedTuple):
    """One limit that was exceeded."""

    limit: str
    """`max_compiles`."""
    allowed: float
    used: float
    functions: tuple[str, ...]
    """What was built, as a budget file calls it: `train.py:loss`."""


class BudgetExceeded(AssertionError):
    """More was built than a budget allows; the text names functions, call sites and causes."""

    def __init__(self, text: str, over: Sequence[Over] = ()) -> None:
        super().__init__(text)
        self.over = tuple(over)


class Budget:
    """What :func:`harness.budget` returns: context manager and decorator, as often as you like."""

    def __init__(
        self,
        limits: Limits,
        functions: Pattern | Sequence[Pattern] | None,
        each: bool,
        warm_up: int,
        where: str,
        exceeded: type[BudgetExceeded] = BudgetExceeded,
    ) -> None:
        self.limits = limits
        self.each = each
        self.warm_up = warm_up
        self.where = where
        self._exceeded = exceeded
        self._matches = matcher(functions, where)
        self._entered = 0
        self._lock = threading.Lock()
        self._open = threading.local()
        self._recording: Recording | None = None
        """With a warm-up: goes on between calls, as what was built then explains what is later."""

    def start(self) -> None:
        """Count from here on: the warm-up is over.

        What was built so far in the block is free, and is what later builds are compared with.

        Raises:
            UsageError: outside a `with` block.
        """
        windows = self._windows()
        if not windows:
            raise UsageError(
                f"{self.where}: start() was called outside the budget's `with` block. "
                "Write `with harness.budget(...) as budget:` and call budget.start() in it."
            )
        windows[-1].start()

    def __enter__(self) -> Budget:
        self._windows().append(self._begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        self._end(self._windows().pop(), failed=error is not None)

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
        if inspect.iscoroutinefunction(function):

            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                window, failed = self._begin(), True
                try:
                    result = await function(*args, **kwargs)
                    failed = False
                finally:
                    self._end(window, failed)
                return result

            return functools.wraps(function)(asynchronous)  # type: ignore[return-value]

        def guarded(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            window, failed = self._begin(), True
            try:
                result = function(*args, **kwargs)
                failed = False
            finally:
                self._end(window, failed)
            return result

        return functools.wraps(function)(guarded)  # type: ignore[return-value]

    def _windows(self) -> list[Window]:
        if not hasattr(self._open, "windows"):
            self._open.windows = []
        found: list[Window] = self._open.windows
        return found

    def close(self) -> None:
        """Stop watching, where a warm-up made the budget go on between its calls."""
        with self._lock:
            recording, self._recording = self._recording, None
        if recording is not None:
            recording.close()

    def _begin(self) -> Window:
        from harness.profiles.budgets.recording import Recording, Window, refuse_inside_a_trace

        refuse_inside_a_trace(self.where)
        with self._lock:
            self._entered += 1
            free = self._entered <= self.warm_up
            if not self.warm_up:
                return Window(Recording(), free)
            if self._recording is None:
                self._recording = Recording()
                weakref.finalize(self, self._recording.close)
            return Window(self._recording, free)

    def _end(self, window: Window, failed: bool) -> None:
        __tracebackhide__ = True
        try:
            over, text = ([], "") if failed or window.free else self._judged(window)
        finally:
            if not self.warm_up:
                window.recording.close()
        if over:
            raise self._exceeded(text, [_over(use) for use in over])

    def _judged(self, window: Window) -> tuple[list[Use], str]:
        profile, builds, before = window.read()
        if not builds:
            return [], ""
        from harness.profiles.budgets.judging import judge
        from harness.profiles.budgets.texts import report
        from harness.profiles.counting import by_function

        found = by_function(builds)
        chosen = [one for one in found if one.eager or self._matches(one.names())]
        parts = [[one] for one in chosen if not one.eager] if self.each else [chosen]
        uses = [
            use
            for part in parts
            for use in judge(self.limits, part, self.where, profile.cause_of, self.each)
        ]
        over = [use for use in uses if use.over]
        return over, report(over, profile.cause_of, before) if over else ""


def _over(use: Use) -> Over:
    users = tuple(counted.label for counted in use.functions if counted.builds)
    return Over(use.name, use.allowed, use.used, users)
