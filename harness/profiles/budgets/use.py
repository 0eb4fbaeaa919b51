"""Hold what was built since a point in time against limits: how much, by what, and the text."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import UsageError
from harness.profiles.budgets.limits import LIMITS, Chosen, compile_s
from harness.profiles.causes.words import said
from harness.profiles.decision.decide import decide
from harness.profiles.functions import Counted, by_function
from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.records.units import counted, often_text, seconds_text
from harness.watch import jax_names
from harness.watch.events import Build

if TYPE_CHECKING:
    from harness.profiles.budgets.limits import CauseOf
    from harness.profiles.causes.cause import Cause
    from harness.profiles.recorded import Recorded

MOST_FUNCTIONS = 5
MOST_CAUSES = 4
"""More is counted, and left to `harness profile`."""

EAGER = (
    "JAX compiles every operation outside jax.jit once for each shape and type. Put the operations "
    "into a jitted function, or make arrays with numpy."
)


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
    """`max_compiles`."""
    allowed: float
    used: float
    users: tuple[User, ...]
    """Of one function, or of all that were counted."""
    one: bool = False
    """Whether it is the limit of one function."""

    @property
    def over(self) -> bool:
        """Whether more was used than is allowed."""
        return self.used > self.allowed


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
        of, users = LIMITS[name].of, []
        for function in functions:
            if function.eager != (name == "max_eager"):
                continue
            amounts = [(built, of(built, cause_of)) for built in function.builds]
            inside = function.inner_traces if name == "max_traces" else 0
            used += sum(amount for _, amount in amounts) + inside
            users.append(User(function, [b for b, amount in amounts if amount > 0], inside))
        uses.append(Use(where, name, allowed, used, tuple(users), one))
    return uses


def number(value: float) -> str:
    """Return a limit as it was written."""
    return f"{value:g}" if value != int(value) else str(int(value))


def each(over: Sequence[Use], cause_of: CauseOf, before: bool = True) -> list[str]:
    """Return what is said of each limit that was exceeded; a build is explained once.

    Args:
        over: what was used of each.
        cause_of: gives the cause of a build.
        before: whether it was recorded what was built earlier; without it, what looks like the
            first build of a function need not be.
    """
    texts = []
    explained: set[int] = set()
    for use in over:
        builds = {id(built) for user in use.users for built in user.builds}
        lines = _exceeded(use, cause_of, before)
        texts.append(next(lines) if builds and builds <= explained else "\n".join(lines))
        explained |= builds
    return texts


def _exceeded(use: Use, cause_of: CauseOf, before: bool) -> Iterator[str]:
    seconds = use.name == "max_compile_seconds"
    amount = (
        f"{seconds_text(use.used)} of compiling"
        if seconds
        else counted(round(use.used), LIMITS[use.name].noun)
    )
    subject = f" of {use.users[0].function.shown}" if use.one and use.users else ""
    allowed = number(use.allowed)
    yield f"{amount}{subject}, and {use.where} allows {allowed} ({use.name} = {allowed})."
    users = [user for user in use.users if user.builds or user.inside]
    users.sort(key=lambda user: -len(user.builds))
    for user in users[:MOST_FUNCTIONS]:
        yield f"  {user.function.shown}{_done(use.name, user)}"
        if user.inside:
            yield f"    {often_text(user.inside)} as a part of another function"
        if use.name == "max_eager":
            for where, count in Counter(map(_site, user.builds)).most_common(2):
                yield f"    {often_text(count)} {where}"
        else:
            yield from _why(user.builds, cause_of, before or use.allowed > 0)
    if len(users) > MOST_FUNCTIONS:
        yield f"  … and {counted(len(users) - MOST_FUNCTIONS, 'more function')}."
    if use.name == "max_eager":
        yield f"  {EAGER}"
    if seconds:
        yield "  Seconds depend on the machine; max_compiles is the same on all."


def _done(name: str, user: User) -> str:
    """Return how often a function was built, as it stands behind its name."""
    if name == "max_compile_seconds":
        seconds = seconds_text(sum(map(compile_s, user.builds)))
        return f": {seconds}, {counted(len(user.builds), 'build')}"
    count, loads = len(user.builds) + user.inside, 0
    if name in ("max_compiles", "max_eager"):
        count = sum(built.times("compile") for built in user.builds)
        loads = sum(built.hits for built in user.builds)
    loaded = f" ({loads} of them loaded from the persistent cache)" if loads else ""
    return f" {LIMITS[name].done} {often_text(count)}{loaded}"


def _why(builds: Sequence[Built], cause_of: CauseOf, before: bool) -> Iterator[str]:
    """Yield call sites and causes, the most frequent first."""
    groups: dict[tuple[str, str, str], list[Built]] = {}
    for built in builds:
        cause = cause_of(built)
        groups.setdefault((_site(built), cause.kind, cause.argument), []).append(built)
    # The first build is seldom what went wrong.
    several = sorted(groups.items(), key=lambda group: (group[0][1] == "first", -len(group[1])))
    for (site, *_), group in several[:MOST_CAUSES]:
        cause = cause_of(group[0])
        many = f"{len(group)} × " if len(group) > 1 else ""
        yield f"    {many}called {site}: {said(cause, before)}"
        if cause.remedy:
            yield f"      {cause.remedy}"
    if len(several) > MOST_CAUSES:
        yield f"    … and {counted(len(several) - MOST_CAUSES, 'more cause')}"


def _site(built: Built) -> str:
    """Return `at train.py:88 in main`."""
    frame = built.call_site
    if not frame.file:
        return "from an unknown place"
    started = built.process.started
    place = place_of(frame.file, started.cwd, started.argv)
    inside = "" if frame.function == "<module>" else f" in {frame.function}"
    return f"at {place}:{frame.line}{inside}"


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
    ) -> tuple[list[Use], str]:
        """Return the limits that were exceeded, by each function `alone` or all, and the text.

        Raises:
            UsageError: if `chosen` means no function of this process.
        """
        process = next(iter(self._profile.processes), None)
        # What a child that was forked in the window has recorded is not this window's.
        if process is None or self._pid != os.getpid():
            return [], ""
        earlier, later = process.lines[: self._earlier], process.lines[self._earlier :]
        ids = {line.id for line in later if isinstance(line, Build)}
        if not ids:
            chosen.check(())
            return [], ""
        before = any(isinstance(line, Build) for line in earlier)
        causes = functools.cache(lambda: decide(process.builds))

        def cause_of(built: Built) -> Cause:
            return causes()[built.key]

        found = by_function(built for built in process.builds if built.line.id in ids)
        chosen.check(one.names() for one in found if not one.eager)
        counted = [one for one in found if one.eager or chosen(one.names())]
        parts = [[one] for one in counted if not one.eager] if alone else [counted]
        uses = [
            use for part in parts for use in judge(limits, part, where, cause_of, alone) if use.over
        ]
        return uses, "\n".join(each(uses, cause_of, before))


def refuse_inside_a_trace(where: str) -> None:
    """Raise UsageError where JAX is tracing the function that opens a budget."""
    if jax_names.tracing():
        raise UsageError(
            f"{where} was opened inside a function that JAX is tracing, where nothing can be "
            "counted. Put @harness.budget above @jax.jit, or `with harness.budget` around the call."
        )
