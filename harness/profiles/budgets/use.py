"""Hold what was built against limits: what was used of each, by what, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.profiles.budgets.limits import Limits
from harness.profiles.causes.cause import Cause
from harness.profiles.causes.words import said
from harness.profiles.functions import Counted
from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.records.units import counted, often_text, seconds_text

MOST_FUNCTIONS = 5
MOST_CAUSES = 4
"""More is counted, and left to `harness profile`."""

EAGER = (
    "JAX compiles every operation outside jax.jit once for each shape and type. Put the operations "
    "into a jitted function, or make arrays with numpy."
)

CauseOf = Callable[[Built], Cause]


class _Limited(NamedTuple):
    """What a limit counts."""

    of: Callable[[Built, CauseOf], float]
    noun: str
    done: str


def _compiles(built: Built, _: CauseOf) -> int:
    return built.times("compile")


def _compile_s(built: Built) -> float:
    """Return the seconds that went into getting an executable, from XLA or the cache."""
    return sum(built.stage_ns(stage) for stage in ("compile", "load", "write")) / 1e9


_LIMITED = {
    "max_compiles": _Limited(_compiles, "compile", "was compiled"),
    "max_traces": _Limited(lambda built, _: built.times("trace") > 0, "trace", "was traced"),
    "max_lowers": _Limited(lambda built, _: built.times("lower"), "lowering", "was lowered"),
    "max_builds": _Limited(lambda built, _: 1, "build", "was built"),
    "max_eager": _Limited(_compiles, "one-operation program", "was compiled"),
    "max_unexplained": _Limited(
        lambda built, cause_of: cause_of(built).kind == "unexplained",
        "unexplained build",
        "was built unexplained",
    ),
    "max_compile_seconds": _Limited(lambda built, _: _compile_s(built), "", ""),
}


@dataclass(frozen=True)
class Use:
    """What was used of one limit."""

    where: str
    """Whose limit it is, as the user wrote it: `[functions."loss"]`, `harness.budget`."""
    name: str
    """`max_compiles`."""
    allowed: float
    used: float
    functions: tuple[Counted, ...]
    """What was counted: one function, or all."""
    one: bool = False
    """Whether it is the limit of one function."""

    @property
    def over(self) -> bool:
        """Whether more was used than is allowed."""
        return self.used > self.allowed

    def builds(self, function: Counted, cause_of: CauseOf) -> list[Built]:
        """Return the builds of a function that used any of it."""
        return [built for built in function.builds if _LIMITED[self.name].of(built, cause_of) > 0]

    def inside(self, function: Counted) -> int:
        """Return how often a function used it as a part of another."""
        return function.inner_traces if self.name == "max_traces" else 0


def judge(
    limits: Limits, functions: Sequence[Counted], where: str, cause_of: CauseOf, one: bool = False
) -> list[Use]:
    """Return what was used of each limit by some functions together, or by `one`.

    Together, JAX's own functions count for `max_eager` only, and all others for all but that.
    """
    own = tuple(function for function in functions if one or not function.eager)
    eager = tuple(function for function in functions if function.eager)
    uses = []
    for name, allowed in limits.given():
        chosen = eager if name == "max_eager" else own
        used = sum(_LIMITED[name].of(b, cause_of) for function in chosen for b in function.builds)
        if name == "max_traces":
            used += sum(function.inner_traces for function in chosen)
        uses.append(Use(where, name, allowed, used, chosen, one))
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
        builds = {id(built) for one in use.functions for built in use.builds(one, cause_of)}
        lines = _exceeded(use, cause_of, before)
        texts.append(next(lines) if builds and builds <= explained else "\n".join(lines))
        explained |= builds
    return texts


def _exceeded(use: Use, cause_of: CauseOf, before: bool) -> Iterator[str]:
    seconds = use.name == "max_compile_seconds"
    amount = (
        f"{seconds_text(use.used)} of compiling"
        if seconds
        else counted(round(use.used), _LIMITED[use.name].noun)
    )
    subject = f" of {use.functions[0].shown}" if use.one and use.functions else ""
    allowed = number(use.allowed)
    yield f"{amount}{subject}, and {use.where} allows {allowed} ({use.name} = {allowed})."
    users = [(one, use.builds(one, cause_of)) for one in use.functions]
    users = [(one, builds) for one, builds in users if builds or use.inside(one)]
    users.sort(key=lambda user: -len(user[1]))
    for one, builds in users[:MOST_FUNCTIONS]:
        yield f"  {one.shown}{_done(use, one, builds)}"
        if inside := use.inside(one):
            yield f"    {often_text(inside)} as a part of another function"
        if use.name == "max_eager":
            for where, count in Counter(map(_site, builds)).most_common(2):
                yield f"    {often_text(count)} {where}"
        else:
            yield from _why(builds, cause_of, before or use.allowed > 0)
    if len(users) > MOST_FUNCTIONS:
        yield f"  … and {len(users) - MOST_FUNCTIONS} more functions."
    if use.name == "max_eager":
        yield f"  {EAGER}"
    if seconds:
        yield "  Seconds depend on the machine; max_compiles is the same on all."


def _done(use: Use, one: Counted, builds: Sequence[Built]) -> str:
    """Return how often a function was built, as it stands behind its name."""
    if use.name == "max_compile_seconds":
        seconds = sum(map(_compile_s, builds))
        return f": {seconds_text(seconds)}, {counted(len(builds), 'build')}"
    compiles = use.name in ("max_compiles", "max_eager")
    count = sum(b.times("compile") for b in builds) if compiles else len(builds) + use.inside(one)
    loads = sum(built.hits for built in builds) if compiles else 0
    loaded = f" ({loads} of them loaded from the persistent cache)" if loads else ""
    return f" {_LIMITED[use.name].done} {often_text(count)}{loaded}"


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
        yield f"    … and {len(several) - MOST_CAUSES} more causes"


def _site(built: Built) -> str:
    """Return `at train.py:88 in main`."""
    frame = built.call_site
    if not frame.file:
        return "from an unknown place"
    started = built.process.started
    place = place_of(frame.file, started.cwd, started.argv)
    inside = "" if frame.function == "<module>" else f" in {frame.function}"
    return f"at {place}:{frame.line}{inside}"
