"""What a budget says when more was built than it allows: by what, from where, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.output.profile_causes import cause_text
from harness.output.profile_remedies import remedy_text
from harness.profiles.budgets.limits import CauseOf, compile_s
from harness.profiles.budgets.use import Exceeded, Use, User
from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.records.units import counted, often_text, seconds_text

MOST_FUNCTIONS = 5
MOST_CAUSES = 4
"""More is counted, and left to `harness profile`."""

NOUNS: Mapping[str, str] = {
    "max_compiles": "compile",
    "max_traces": "trace",
    "max_lowers": "lowering",
    "max_builds": "build",
    "max_eager": "one-operation program",
    "max_unexplained": "unexplained build",
}

_DONE: Mapping[str, str] = {
    "max_compiles": "was compiled",
    "max_traces": "was traced",
    "max_lowers": "was lowered",
    "max_builds": "was built",
    "max_eager": "was compiled",
    "max_unexplained": "was built unexplained",
}

EAGER = (
    "JAX compiles every operation outside jax.jit once for each shape and type. Put the operations "
    "into a jitted function, or make arrays with numpy."
)


def number(value: float) -> str:
    """Return a limit as it was written."""
    return f"{value:g}" if value != int(value) else str(int(value))


def exceeded_text(exceeded: Exceeded) -> str:
    """Return the text of all limits that were exceeded; a build is explained once."""
    texts = []
    explained: set[int] = set()
    for use in exceeded.uses:
        builds = {id(built) for user in use.users for built in user.builds}
        assert exceeded.cause_of is not None
        lines = _exceeded(use, exceeded.cause_of, exceeded.before)
        texts.append(next(lines) if builds and builds <= explained else "\n".join(lines))
        explained |= builds
    return "\n".join(texts)


def _exceeded(use: Use, cause_of: CauseOf, before: bool) -> Iterator[str]:
    seconds = use.name == "max_compile_seconds"
    amount = (
        f"{seconds_text(use.used)} of compiling"
        if seconds
        else counted(round(use.used), NOUNS[use.name])
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
    return f" {_DONE[name]} {often_text(count)}{loaded}"


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
        yield f"    {many}called {site}: {cause_text(cause, group[0], before)}"
        if cause.remedy:
            yield f"      {remedy_text(cause.remedy)} ({cause.remedy.id})"
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
