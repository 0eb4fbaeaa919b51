"""Hold what was built since a point in time against limits: how much, and by what."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.errors import UsageError
from harness.jaxhooks import jax_names
from harness.jaxhooks.events import Build
from harness.profiles.budgets.limits import LIMITS, CauseOf, Chosen
from harness.profiles.causes.cause import Cause
from harness.profiles.causes.decide import decide
from harness.profiles.functions import Counted, by_function
from harness.profiles.model import Built
from harness.profiles.recorded import Recorded


class User(NamedTuple):
    """A function, and what it used of a limit."""

    function: Counted
    builds: list[Built]
    inside: int
    """How often it used it as a part of another."""


@dataclass(frozen=True)
class Use:
    """What was used of one limit."""

    where: str
    """Whose limit it is, as the user wrote it: `harness.budget at train.py:30`."""
    name: str
    allowed: float
    used: float
    users: tuple[User, ...]
    """Of one function, or of all that were counted."""
    one: bool = False

    @property
    def over(self) -> bool:
        """Whether more was used than is allowed."""
        return self.used > self.allowed


@dataclass(frozen=True)
class Exceeded:
    """The limits that were exceeded; none of them where all is well."""

    uses: tuple[Use, ...] = ()
    cause_of: CauseOf | None = None
    before: bool = True
    """Whether it was recorded what was built earlier; without it, what looks like the first build
    of a function need not be."""


def judge(
    limits: Mapping[str, float],
    functions: Sequence[Counted],
    where: str,
    cause_of: CauseOf,
    one: bool = False,
) -> list[Use]:
    """Return what was used of each limit by some functions together, or by `one`.

    Together, JAX's own functions count for `max_eager` only, and all others for all but that.
    """
    uses = []
    for name, allowed in limits.items():
        used: float = 0
        of, users = LIMITS[name], []
        for function in functions:
            if function.eager != (name == "max_eager"):
                continue
            amounts = [(built, of(built, cause_of)) for built in function.builds]
            inside = function.inner_traces if name == "max_traces" else 0
            used += sum(amount for _, amount in amounts) + inside
            users.append(User(function, [b for b, amount in amounts if amount > 0], inside))
        uses.append(Use(where, name, allowed, used, tuple(users), one))
    return uses


class Window:
    """What is recorded from its last `start` on; in a `free` one (warm-up) nothing counts."""

    def __init__(self, profile: Recorded, free: bool) -> None:
        self.free = free
        self._profile = profile
        self._pid = os.getpid()
        self.start()

    def start(self) -> None:
        """Begin here: what was built so far is known, and not counted."""
        self._earlier = sum(len(process.lines) for process in self._profile.processes)

    def judge(
        self, limits: Mapping[str, float], chosen: Chosen, where: str, alone: bool
    ) -> Exceeded:
        """Return the limits that were exceeded, by each function `alone` or all.

        Raises:
            UsageError: if `chosen` means no function of this process.
        """
        process = next(iter(self._profile.processes), None)
        # What a child that was forked in the window has recorded is not this window's.
        if process is None or self._pid != os.getpid():
            return Exceeded()
        earlier, later = process.lines[: self._earlier], process.lines[self._earlier :]
        ids = {line.id for line in later if isinstance(line, Build)}
        if not ids:
            chosen.check(())
            return Exceeded()
        before = any(isinstance(line, Build) for line in earlier)
        causes = functools.cache(lambda: decide(process.builds))

        def cause_of(built: Built) -> Cause:
            return causes()[built.key]

        functions = by_function(built for built in process.builds if built.line.id in ids)
        chosen.check(one.names() for one in functions if not one.eager)
        counted = [one for one in functions if one.eager or chosen(one.names())]
        parts = [[one] for one in counted if not one.eager] if alone else [counted]
        uses = [
            use for part in parts for use in judge(limits, part, where, cause_of, alone) if use.over
        ]
        return Exceeded(tuple(uses), cause_of, before)


def refuse_inside_a_trace(where: str) -> None:
    """Raise UsageError where JAX is tracing the function that opens a budget."""
    if jax_names.tracing():
        raise UsageError(
            f"{where} was opened inside a function that JAX is tracing, where nothing can be "
            "counted. Put @harness.budget above @jax.jit, or `with harness.budget` around the call."
        )
